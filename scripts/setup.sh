#!/usr/bin/env bash
# As root, installs the Debian packages that a run needs. Names everything else that is missing.
# usage: scripts/setup.sh [--check | --demo | --demo-server | --example | --bench | --frameworks | --package | --engines]: without an option,
# for `make test`
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:---test}

wanted() { # PURPOSE...: true if this run is for one of them; --bench, --frameworks and --package include `test`
    case " $* " in *" ${purpose#--} "*) true ;; *) [[ "$purpose" =~ ^--(bench|frameworks|package)$ && " $* " = *" test "* ]] ;; esac
}
missing=()
need() { # COMMAND PACKAGE...
    PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || missing+=("${@:2}")
}
need cc gcc libc6-dev
need make make
need flock util-linux
need python3 python3 python3-venv
# Debian's python3 comes without venv.
! command -v python3 >/dev/null || python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
if wanted demo example test; then
    need node nodejs
    need npm npm
fi
if wanted demo test; then
    need c++ g++
    # A test sets the clock of a process back with it.
    [ -n "$(find /usr/lib -name libfaketimeMT.so.1 -print -quit 2>/dev/null)" ] || missing+=(libfaketime)
fi
if wanted check test; then
    # A test of the Python binding links libpython.
    python3 - <<'PYTHON' 2>/dev/null || missing+=(python3-dev)
import os, sys, sysconfig
get = sysconfig.get_config_var
sys.exit(not os.path.exists(os.path.join(get("LIBDIR"), get("LDLIBRARY"))))
PYTHON
fi
if wanted test; then
    need git git
    need openssl openssl
    # A test reads the server's units with it.
    need systemd-analyze systemd
    need cmake cmake
    need pkg-config pkg-config
    # It runs a program of the guide.
    need luajit luajit
    # A test reads the pages of `frazil man` with it.
    need man man-db
    # A test completes the command's words in shells.
    need zsh zsh
    need fish fish
    # The game servers in examples/ store their inventory in SQLite.
    need sqlite3 sqlite3
    [ -e /usr/include/sqlite3.h ] || missing+=(libsqlite3-dev)
    need valgrind valgrind
    # The headers must also compile with Clang.
    need clang clang
    # A test opens frazil/lite in a browser.
    browser=chromium
    ! grep -qs '^ID=ubuntu$' /etc/os-release || browser=chromium-browser
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=("$browser")
    # The stores' servers, of which tests/servers starts private instances.
    need redis-server redis-server
    need mariadbd mariadb-server
    # Django's MariaDB driver is compiled when it is installed.
    need mariadb_config libmariadb-dev
    need etcd etcd-server
    # A test restores snapshots of etcd.
    need etcdctl etcd-client
    [ -e /usr/share/java/zookeeper.jar ] || missing+=(zookeeper)
fi
if wanted engines test; then
    # A test compiles the C# binding and runs it.
    need mcs mono-mcs
    need mono mono-runtime
fi
if wanted demo-server test; then
    need curl curl
    need redis-cli redis-tools
fi
if wanted test; then
    # promtool, by which the guide's alerts are tested.
    need promtool prometheus
    # A proxy with the PROXY protocol.
    [ -x /usr/sbin/haproxy ] || need haproxy haproxy
    # The guide shows clients of frazil-server in these languages.
    need javac default-jdk-headless
    need php php-cli
    php -m 2>/dev/null | grep -qx redis || missing+=(php-redis)
fi
! wanted bench || need wrk wrk
# Large packages, for the programs of other languages in the guide.
! wanted frameworks || { need go golang-go; need mvn maven; compgen -G '/usr/sbin/php-fpm*' >/dev/null || missing+=(php-fpm); }
if wanted demo-server example test; then
    need setpriv util-linux
    [ -n "$(find /usr/lib/postgresql -name postgres -path '*/bin/*' -print -quit 2>/dev/null)" ] || missing+=(postgresql)
fi
# The tests of a release run NuGet's own client.
! [[ $purpose =~ ^--(package|engines)$ ]] || need al mono-devel

if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]}"
    # The servers' packages would start their servers, which fails in containers. This file forbids it during the installation; a file that
    # exists already stays.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap 'rm -f $policy' EXIT
        printf '#!/bin/sh\nexit 101\n' > $policy && chmod +x $policy
    fi
    # Another installation may be running.
    apt="apt-get -qq -o DPkg::Lock::Timeout=600"
    $apt update && DEBIAN_FRONTEND=noninteractive $apt install -y "${missing[@]}" >/dev/null
    missing=()
fi

# Everything that is missing is reported at once, before the first build.
absent=()
[ ${#missing[@]} = 0 ] || absent+=("these packages: ${missing[*]}; root installs them with: apt-get install ${missing[*]}")
. scripts/rust.sh
rust=$(find_cargo 2>&1) || absent+=("${rust#frazil needs }")
if command -v python3 >/dev/null; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || absent+=("Python 3.11 or later, and python3 is $(python3 --version || true)")
fi
if wanted demo example test && command -v node >/dev/null; then
    node -e 'process.exit(Number(parseInt(process.versions.node) < 18))' || absent+=("Node 18 or later, and node is $(node --version || true)")
fi
if wanted test; then
    tests/adapters/python/newest.sh >/dev/null || absent+=("Python 3.12 or 3.13 as well, in PATH or in pyenv: current frameworks want it")
fi
# Free disk space in GB. A checkout that was built before needs less.
case $purpose in --demo | --demo-server | --example | --engines) room=3 ;; --check) room=4 ;; *) room=9 ;; esac
[ ! -d target ] || room=2
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$free" -ge $room ] || absent+=("$room GB of free disk space, and in $PWD there are $free")
# Where the tests and their servers write.
if wanted check test; then
    free=$(df -Pk "${TMPDIR:-/tmp}" | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "$free" -ge 2 ] || absent+=("2 GB of free disk space for temporary files, and in ${TMPDIR:-/tmp} there are $free: TMPDIR names another folder")
fi
if wanted test && command -v python3 >/dev/null; then
    why=$(python3 -B -c 'import sys; sys.path.insert(0, "tests"); from servers import process; held = [process.reserve_port() for _ in range(40)]' 2>&1) ||
        absent+=("40 free ports on the loopback interface: ${why##*$'\n'}")
fi
if [ ${#absent[@]} -gt 0 ]; then
    printf 'frazil needs %s\n' "${absent[@]}" >&2
    exit 1
fi
