#!/usr/bin/env bash
# Every suite, in every language. Each prints its runner's own closing lines; the first failure stops. Most tests wait more than they
# compute, so some steps go on beside others.
set -euo pipefail
. "$(dirname "$0")/begin.sh"
pytest=(.venv/bin/python -m pytest -q)
# Tests that mostly wait for servers; several such steps go on at once.
workers=(--numprocesses 2)
# What all suites in Rust are compiled with, once.
rust=(cargo test --locked --workspace --features "frazil/stores,frazil/cli,$ALIGNED")

servers_in_memory
step "Tools, servers, ports and disk space"
run scripts/setup.sh
beside "Rust: the lease's simulation, which catches bugs that are planted into it" tests/mutants/run.py --short
step "Rust: the core, its documentation and README; the guards of the bindings"
run "${rust[@]}" -- --skip simulation
beside "Rust: the word, the gate and the lease under loom" \
    env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked -p frazil --lib loom
beside "C and C++" tests/c/run.sh
step "Rust: the instructions of the hot paths"
run tests/instructions/run.py
step "Rust: every store's client, on private servers"
run python3 tests/servers all -- "${rust[@]}" -q --lib -- --ignored
beside "Node" sh -c 'node/build.sh && node --test tests/node/*.test.mjs'
step "Python"
run python/build.sh
run "${pytest[@]}" --numprocesses 2 tests/python
beside "frazil-server, driven by real clients" tests/server/run.sh
beside "What \`frazil sql\` prints, on every database" tests/sql/run.sh
step "Adapters in Python, with the current frameworks"
run tests/adapters/python/run.sh --current
join
beside "Faults on every store: kills, pauses, cut connections, restarts" "${pytest[@]}" "${workers[@]}" -rP tests/faults
beside "Leases and segments on every store; the servers and the cutting proxy themselves" \
    "${pytest[@]}" "${workers[@]}" tests/leases tests/servers
beside "Adapters in Node, with their frameworks; an example, whose IDs go from the database to the browser" \
    sh -c 'tests/adapters/node/run.sh && .venv/bin/python -m pytest -q tests/examples -k "fastapi or test_harness"'
step "All languages at once, the README, and what must not drift"
run "${pytest[@]}" tests/cross tests/repo
join
step "What users install, in clean environments: the crate, the wheel, the npm packages, the C library; frazil/lite in a browser"
run "${pytest[@]}" -rs tests/package
