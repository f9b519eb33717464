#!/bin/sh
# Installs the release artefacts of one language into an empty folder, and mints with them. Every platform can run this.
# usage: scripts/smoke.sh python|node|server
set -eu
packages=$(cd "$(dirname "$0")/../build/package" && pwd)
cd "$(mktemp -d)"
case $1 in
    python)
        python3 -m venv venv
        # Windows calls the folder Scripts.
        PATH=$PWD/venv/bin:$PWD/venv/Scripts:$PATH
        python -m pip install --quiet --no-index --find-links "$packages/python" frazil
        frazil --version
        python -c 'import frazil; print(frazil.Snowflake("standard", store="memory").next())' ;;
    node)
        npm init --yes >/dev/null
        npm install --offline --no-audit --no-fund --loglevel=error "$packages"/node/*.tgz
        npx --no-install frazil --version
        node -e 'console.log(new (require("frazil").Snowflake)("standard", { store: "memory" }).next())' ;;
    server)
        tar -xzf "$packages"/server/frazil-server-*.tar.gz --strip-components=1
        ./frazil-server --http 127.0.0.1:0 'ids=standard store=memory' 2> log &
        trap 'kill $!' EXIT
        until grep -q '"event":"ready"' log; do
            kill -0 $! 2> /dev/null || { cat log >&2; exit 1; }
            sleep 0.1
        done
        address=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' log)
        python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], b"").read().decode().strip())' "http://$address/v1/ids/next" ;;
    *) echo "usage: scripts/smoke.sh python|node|server" >&2; exit 2 ;;
esac
