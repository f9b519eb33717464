#!/usr/bin/env bash
# Builds frazil-server; three replicas on a PostgreSQL of their own and six clients go on while everything around them breaks.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools and disk space"
run scripts/setup.sh --demo-server
step "Building frazil-server, which takes two minutes the first time"
run cargo build --quiet --locked --profile demo -p frazil-server
venv=build/demo-server needs=demo/requirements.txt
if ! cmp -s $needs $venv/installed; then
    step "Installing what the clients need"
    rm -rf $venv
    run python3 -m venv $venv
    run scripts/uv.sh pip install --quiet --python $venv/bin/python --requirement $needs
    cp $needs $venv/installed
fi
step "frazil-server"
run env "FRAZIL_TEST_PROGRAM=${CARGO_TARGET_DIR:-target}/demo/frazil-server" $venv/bin/python demo/server.py
