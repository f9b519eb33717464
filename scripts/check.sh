#!/usr/bin/env bash
# The core, the command line and one binding, without servers: a contributor's short loop.
set -euo pipefail
. "$(dirname "$0")/begin.sh"
# The guide's examples lease from `local`, here a folder of the checkout.
rust=(env FRAZIL_HOME="$PWD/build/local" cargo test --locked -p frazil -p frazil-cli -p frazil-python --features frazil/stores,frazil-python/aligned)

step "Tools and disk space"
run scripts/setup.sh --check
step "Builds: the core and the command line with their tests, the wheel for Python"
run "${rust[@]}" --quiet --no-run
run python/build.sh
beside "Rust: the core, its documentation and README; the command line; the guards of the binding" env RUST_TEST_THREADS=4 "${rust[@]}" -- --skip simulation
# Many of its tests wait.
beside "Python, but for its servers" .venv/bin/python -m pytest -q --numprocesses 4 --ignore tests/python/test_frameworks.py tests/python
join
