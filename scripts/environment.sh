#!/bin/sh
# Makes .venv and installs into it, with uv where it is on PATH and with pip elsewhere.
#
#   environment.sh make              make .venv, empty but for pip
#   environment.sh install GROUP     install the checkout (editable) and a dependency group of pyproject.toml
#
# PYTHON chooses the interpreter; VENV the folder; NO_UV=1 leaves uv alone.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

say() { printf '%s\n' "$*" >&2; }

good() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        good "$PYTHON" || { say "PYTHON=$PYTHON is not Python 3.11 or newer."; exit 1; }
        printf '%s' "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if good "$candidate"; then printf '%s' "$candidate"; return; fi
    done
    say "No Python 3.11 or newer found. Install one (Debian 12: apt-get install python3 python3-venv),"
    say "or name yours: make PYTHON=/path/to/python3.12 ..."
    exit 1
}

# Debian's python3 comes without the module that puts pip into a new environment.
have_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

bring_venv() {
    have_venv "$1" && return
    package="python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "Installing $package ..."
        log=$(mktemp)
        { apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"; } \
            >"$log" 2>&1 || tail -n 15 "$log" >&2
        rm -f "$log"
        have_venv "$1" && return
    fi
    say "This Python cannot make environments. Install its venv module (Debian: apt-get install $package)."
    exit 1
}

use_uv() { [ -z "${NO_UV:-}" ] && command -v uv >/dev/null 2>&1; }

# The system's certificates, as pip and apt use them: a company may have its own.
export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1

case "$1" in
make)
    python=$(find_python)
    bring_venv "$python"
    if [ -x "$venv/bin/python" ]; then
        good "$venv/bin/python" || { say "$venv has a Python older than 3.11: remove it, or name another folder by VENV."; exit 1; }
        say "Using the environment in $venv as it is; 'make clean' begins anew."
    else
        "$python" -m venv --clear "$venv"
    fi
    use_uv || "$venv/bin/python" -m pip install -q --disable-pip-version-check --upgrade "pip>=25.1"  # knows --group
    ;;
install)
    say "Installing into $venv: $2 ..."
    if use_uv; then
        uv pip install -q --compile-bytecode --python "$venv/bin/python" --editable . --group "$2"
    else
        "$venv/bin/python" -m pip install -q --disable-pip-version-check --editable . --group "$2"
    fi
    ;;
*)
    say "usage: $0 make | install GROUP"
    exit 2
    ;;
esac
