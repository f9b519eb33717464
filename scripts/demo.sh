#!/usr/bin/env bash
# Builds the three bindings, without the clients of servers, and runs a small real program in each, all at the same time.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools and disk space"
run scripts/setup.sh --demo
step "Building the core and the addon for Node, which takes two minutes the first time"
run node/build.sh --lean
step "Building the wheel for Python"
run python/build.sh --lean
step "Building the library for C and C++"
run c-api/build.sh --demo --lean
[ build/game -nt demo/game.cpp ] && [ build/game -nt include/frazil.hpp ] ||
    run c++ -std=c++17 -O2 -Ibuild/c/include demo/game.cpp -Lbuild/c/lib -lfrazil -Wl,-rpath,"$PWD/build/c/lib" -o build/game
step "The programs"
run .venv/bin/python demo/run.py
