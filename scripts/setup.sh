#!/usr/bin/env bash
# Makes sure that the tools are there: Debian's packages are installed when we are root, anything else is named.
# usage: scripts/setup.sh [--package], where `make package` needs more
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { # COMMAND PACKAGE...
    PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || missing+=("${@:2}")
}
need cc gcc libc6-dev
need c++ g++
need make make
need cmake cmake
need pkg-config pkg-config
need python3 python3 python3-venv
need node nodejs
need npm npm
need valgrind valgrind
# `make package` compiles the guide's C#.
[ "${1:-}" != --package ] || need mcs mono-mcs mono-runtime
# A test of the Python binding links libpython.
python3 - <<'PYTHON' 2>/dev/null || missing+=(python3-dev)
import os, sys, sysconfig
get = sysconfig.get_config_var
sys.exit(not os.path.exists(os.path.join(get("LIBDIR"), get("LDLIBRARY"))))
PYTHON
# A test opens frazil/lite in a browser.
browser=chromium
! grep -qs '^ID=ubuntu$' /etc/os-release || browser=chromium-browser
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=("$browser")
# A test turns the clock back under a running process.
[ -n "$(find /usr/lib -name libfaketimeMT.so.1 -print -quit 2>/dev/null)" ] || missing+=(libfaketime)
# The stores' servers, of which tests/servers starts private instances.
need redis-server redis-server
need mariadbd mariadb-server
need etcd etcd-server
need setpriv util-linux
[ -n "$(find /usr/lib/postgresql -name postgres -path '*/bin/*' -print -quit 2>/dev/null)" ] || missing+=(postgresql)
[ -e /usr/share/java/zookeeper.jar ] || missing+=(zookeeper)

if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        # The servers' packages would start them, which nobody asked for, and which fails in containers: meanwhile the answer to
        # "may this service start?" is no. An answer that is there stays.
        policy=/usr/sbin/policy-rc.d
        if [ ! -e $policy ]; then
            trap 'rm -f $policy' EXIT
            printf '#!/bin/sh\nexit 101\n' > $policy && chmod +x $policy
        fi
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
    else
        echo "frazil needs these packages: ${missing[*]}" >&2
        exit 1
    fi
fi
command -v cargo >/dev/null || { echo "frazil needs Rust 1.94 or later: see rustup.rs" >&2; exit 1; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "frazil needs Python 3.11 or later, and python3 is $(python3 --version)" >&2; exit 1; }
node -e 'process.exit(Number(parseInt(process.versions.node) < 18))' || { echo "frazil needs Node 18 or later, and node is $(node --version)" >&2; exit 1; }
