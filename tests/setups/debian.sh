#!/usr/bin/env bash
# Runs tests/setups with the servers of another release of Debian, within a folder that holds this release.
# Its packages never meet this system's own libraries.
# usage: tests/setups/debian.sh RELEASE [NAME]... [--seconds=60]
#        for example: tests/setups/debian.sh trixie pgbouncer-session valkey
#        as root, after python/build.sh; FRAZIL_SETUPS is the folder (~/.cache/frazil/setups): 2 GB for each
#        release, which is installed once in some three minutes
#        FRAZIL_SERVERS names other packages than these, because MySQL and MariaDB exclude each other:
#        FRAZIL_SETUPS=~/.cache/frazil/mysql FRAZIL_SERVERS='mysql-server python3' tests/setups/debian.sh sid mysql
set -euo pipefail
cd "$(dirname "$0")/../.."
release=${1:?usage: tests/setups/debian.sh RELEASE [NAME]... [--seconds=60]}
shift
servers=${FRAZIL_SERVERS:-postgresql pgbouncer pgpool2 odyssey haproxy redis-server redis-sentinel valkey-server redict mariadb-server
    galera-4 rsync etcd-server etcd-client zookeeper python3}
root=${FRAZIL_SETUPS:-${XDG_CACHE_HOME:-$HOME/.cache}/frazil/setups}/$release
package=$(.venv/bin/python -c 'import frazil; print(frazil.__path__[0])')

within() {
    tests/tools/debian.sh run "$root" "$PWD:/frazil" "$package:/packages/frazil" -- "$@"
}

tests/tools/debian.sh make "$root" "$release" python3
if [ ! -e "$root/installed" ]; then
    # No server starts by itself.
    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    # Not every release has each of them.
    # shellcheck disable=SC2016
    within sh -c '
        for package; do apt-cache show "$package" > /dev/null 2>&1 && set -- "$@" "$package"; shift; done
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
    ' sh $servers
    touch "$root/installed"
fi
within sh -c 'cd /frazil && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/packages exec python3 tests/setups "$@"' sh "$@"
