#!/usr/bin/env bash
# Every suite, in every language. Each prints its runner's own closing lines; the first failure stops.
set -euo pipefail
. "$(dirname "$0")/begin.sh"
pytest=(.venv/bin/python -m pytest -q)
# Tests that mostly wait for servers go on side by side.
beside=(--numprocesses 3)
# What all suites in Rust are compiled with, once.
rust=(cargo test --locked --workspace --features "frazil/stores,frazil/cli,$ALIGNED")

step "Tools, servers, ports and disk space"
run scripts/setup.sh
step "Rust: the core, its documentation and README; the guards of the bindings"
run "${rust[@]}"
step "Rust: bugs planted into the lease's protocol are caught by its simulation"
run tests/mutants/run.py --short
step "Rust: the instructions of the hot paths"
run tests/instructions/run.py
step "Rust: every store's client, on private servers"
run python3 tests/servers all -- "${rust[@]}" -q --lib -- --ignored
step "Rust: the word, the gate and the lease under loom"
run env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked -p frazil --lib loom
step "C and C++"
run tests/c/run.sh
step "Python"
run python/build.sh
run "${pytest[@]}" --numprocesses 2 tests/python
step "Node"
run node/build.sh
run node --test tests/node/*.test.mjs
step "What users install, in clean environments: the crate, the wheel, the npm packages, the C library; frazil/lite in a browser"
run "${pytest[@]}" -rs tests/package
step "All languages at once, the README, and what must not drift"
run "${pytest[@]}" tests/cross tests/repo
step "Leases and segments on every store; the servers and the cutting proxy themselves"
run "${pytest[@]}" "${beside[@]}" tests/leases tests/servers
step "Faults on every store: kills, pauses, cut connections, restarts"
run "${pytest[@]}" "${beside[@]}" -rP tests/faults
