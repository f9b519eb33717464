#!/bin/sh
# Installs the release artefacts of one language into an empty folder, and mints with them: what can be asked of any platform.
# usage: scripts/smoke.sh python|node
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
    *) echo "usage: scripts/smoke.sh python|node" >&2; exit 2 ;;
esac
