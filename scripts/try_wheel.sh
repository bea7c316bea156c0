#!/bin/sh
# Installs the wheel of dist/ into an empty environment, with the checkout out of reach, and uses it: once with
# the newest releases of everything it needs, and once with the oldest that pyproject.toml allows.
set -eu
cd "$(dirname "$0")/.."
python=$(cd "${VENV:-.venv}/bin" && pwd)/python
wheel=$(ls "$PWD"/dist/reservable-*.whl)
oldest=$("$python" -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*(needed.replace(">=", "==") for needed in tomllib.load(file)["project"]["dependencies"]))
')
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 1' HUP INT TERM
cp scripts/try_wheel.py "$place"
cd "$place"

try() { # NAME REQUIREMENT...
    name=$1
    shift
    "$python" -m venv "$name"
    "$name/bin/python" -m pip install -q --disable-pip-version-check "$wheel" "$@"
    # -I: neither the current folder nor PYTHONPATH nor the user's own packages can lend a hand.
    "$name/bin/python" -I try_wheel.py
}

try newest
# The oldest releases of the others were never built for the newest Pythons, so they go with the oldest of these.
if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
    # shellcheck disable=SC2086 # one word for each requirement
    try oldest $oldest
fi
