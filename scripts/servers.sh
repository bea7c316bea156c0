#!/bin/sh
# Puts Redis, PostgreSQL and MariaDB on the machine for the tests, and Chromium for those of the admin, where it may:
# as root on Debian and its kin. Nothing is started here: the tests start servers of their own, and the packages are
# told not to. Elsewhere it says what is missing and goes on; the tests then skip, or fail where CI is set.
#
#   servers.sh            the servers
#   servers.sh browser    the servers and the browser
set -eu

find_postgres() { command -v postgres || ls /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres | grep .; }
find_mariadb() { PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v mariadbd; }

# In fact the programs and the packages that bring them.
missing_servers() {
    command -v redis-server >/dev/null 2>&1 || printf 'redis-server '
    find_postgres >/dev/null 2>&1 || printf 'postgresql '
    find_mariadb >/dev/null 2>&1 || printf 'mariadb-server '
}

missing_browser() {
    command -v chromium >/dev/null 2>&1 || printf 'chromium '
    command -v chromedriver >/dev/null 2>&1 || printf 'chromium-driver '
}

install() { # PACKAGE...
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
    echo "Installing for the tests: $* ..."
    policy=/usr/sbin/policy-rc.d # its answer 101: "do not start services now"
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        trap 'exit 1' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    log=$(mktemp)
    if apt-get update -qq >"$log" 2>&1 &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1; then
        rm -f "$log"
    else
        tail -n 15 "$log"
        rm -f "$log"
    fi
}

# One after the other: Debian's kin may have no package of the browser, and the servers do not wait for it.
bring() { # KIND
    packages=$("missing_$1")
    [ -n "$packages" ] || return 0
    # shellcheck disable=SC2086 # one word for each package
    install $packages
    packages=$("missing_$1")
    [ -z "$packages" ] ||
        echo "Not on this machine: $packages- install these, or give URLs of servers (see CONTRIBUTING.md). Going on without."
}

bring servers
[ "${1:-}" != browser ] || bring browser
