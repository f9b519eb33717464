#!/usr/bin/env bash
# Builds the three bindings and runs a small real program in each, all at the same time.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
c-api/build.sh --release
python/build.sh --release
node/build.sh --release
c++ -std=c++17 -O2 -Ibuild/c/include demo/game.cpp -Lbuild/c/lib -lfrazil -Wl,-rpath,"$PWD/build/c/lib" -o build/game
.venv/bin/python demo/run.py
