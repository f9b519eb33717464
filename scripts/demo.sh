#!/usr/bin/env bash
# Builds the three bindings and runs a small real program in each, all at the same time.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools and disk space"
run scripts/setup.sh --demo
step "Building the core and the libraries for C, Python and Node: a few minutes the first time"
run cargo build --locked --profile demo -p frazil-c -p frazil-node -p frazil-python --features "$ALIGNED"
step "Putting them where the programs find them"
run c-api/build.sh --demo
run python/build.sh --demo
run node/build.sh --demo
run c++ -std=c++17 -O2 -Ibuild/c/include demo/game.cpp -Lbuild/c/lib -lfrazil -Wl,-rpath,"$PWD/build/c/lib" -o build/game
step "The programs"
run .venv/bin/python demo/run.py
