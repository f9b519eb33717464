#!/usr/bin/env bash
# The core and one binding, without servers: a contributor's short loop.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools and disk space"
run scripts/setup.sh --check
step "Rust: the core, its documentation and README; the guards of the bindings"
run cargo test --locked --workspace --features "frazil/stores,frazil/cli,$ALIGNED"
step "Python"
run python/build.sh
run .venv/bin/python -m pytest -q --numprocesses 2 tests/python
