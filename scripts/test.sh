#!/usr/bin/env bash
# Every suite, in every language. Each prints its runner's own closing lines; the first failure stops.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s\n' "$*"; }

scripts/setup.sh
step "Rust: the core, its documentation and README"
cargo test --locked -p frazil --features stores,cli
step "Rust: bugs planted into the lease's protocol are caught by its simulation"
tests/mutants/run.py --short
step "Rust: every store's client, on private servers"
python3 tests/servers all -- cargo test --locked -q -p frazil --features stores --lib -- --ignored
step "Rust: the word, the gate and the lease under loom"
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked -p frazil --lib loom
step "Rust: the guards of the bindings"
cargo test --locked -p frazil-c -p frazil-python -p frazil-node
step "C and C++"
c-api/build.sh
tests/c/run.sh
step "Python"
python/build.sh
.venv/bin/python -m pytest -q tests/python
step "Node"
node/build.sh
node --test tests/node/*.test.mjs
step "What users install, in clean environments: the crate, the wheel, the npm packages, the C library; frazil/lite in a browser"
.venv/bin/python -m pytest -q -rs tests/package
step "All languages at once, the README, and what must not drift"
.venv/bin/python -m pytest -q tests/cross tests/repo
step "Leases and segments on every store; the servers and the cutting proxy themselves"
.venv/bin/python -m pytest -q tests/leases tests/servers
step "Faults on every store: kills, pauses, cut connections, restarts"
.venv/bin/python -m pytest -q tests/faults
