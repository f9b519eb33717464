#!/usr/bin/env bash
# Every suite, in every language. Each prints its runner's own closing lines; the first failure stops. Many tests wait more than they
# compute, so the suites go on beside each other.
set -euo pipefail
. "$(dirname "$0")/begin.sh"
pytest=(.venv/bin/python -m pytest -q)
# Tests that mostly wait: for servers, and for each other.
workers=(--numprocesses 2)
# What all suites in Rust are compiled with, once; the guide's examples lease from `local`, here a folder of the checkout.
rust=(env FRAZIL_HOME="$PWD/build/local" cargo test --locked --workspace --features "frazil/stores,$ALIGNED")

servers_in_memory
step "Tools, servers, ports and disk space"
run scripts/setup.sh
beside "Rust: the lease's simulation, which catches bugs that are planted into it" tests/mutants/run.py --short
beside "Rust: the instructions of the hot paths" tests/instructions/run.py
# Nothing that others use is built after this step.
step "Builds: all of Rust, frazil-server, the library for C, the addon for Node, the wheel for Python"
run "${rust[@]}" --quiet --no-run
run server/build.sh
run c-api/build.sh
run node/build.sh
run python/build.sh
end_step

# The longest first, and those that wait among those that compute.
beside "C: the size of the lean library of a release" \
    sh -c 'c-api/install.sh --release --lean --quiet build/lean && python3 scripts/sizes.py --lean build/lean/lib/libfrazil.so'
beside "Faults on every store: kills, pauses, cut connections, restarts" "${pytest[@]}" "${workers[@]}" -rP tests/faults
beside "Adapters in Node, with their frameworks; an example, whose IDs go from the database to the browser" \
    sh -c 'tests/adapters/node/run.sh && .venv/bin/python -m pytest -q tests/examples -k "fastapi or test_harness"'
beside "C and C++" tests/c/run.sh --built
beside "Adapters in Python, with the current frameworks" tests/adapters/python/run.sh --current
beside "Rust: the core, its documentation and README; the command line; the guards of the bindings" "${rust[@]}" -- --skip simulation
beside "Backups of every store, restored while processes mint" "${pytest[@]}" --numprocesses 4 tests/restores
beside "Leases and segments on every store; the servers and the cutting proxy themselves" \
    "${pytest[@]}" "${workers[@]}" tests/leases tests/servers
beside "Rust: the stamp, the gate and the lease under loom" \
    env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked -p frazil --lib loom
beside "Rust: the guard of other Unix systems" scripts/lock-files.sh
beside "Python" "${pytest[@]}" "${workers[@]}" tests/python
beside "Rust: every store's client, on private servers" python3 tests/servers all -- "${rust[@]}" -q --lib --test starts --test copies -- --ignored
beside "Node" node --test --test-timeout=900000 tests/node/*.test.mjs
beside "What users install, in clean environments: the crate, the wheel, the npm packages, the C library; frazil/lite in a browser" \
    "${pytest[@]}" -rs tests/package
beside "All languages at once, the README, and what must not drift" "${pytest[@]}" tests/cross tests/repo
if [ "$(id -u)" = 0 ] && [ -e "${FRAZIL_PLATFORMS:-${XDG_CACHE_HOME:-$HOME/.cache}/frazil/platforms}/sid/ready" ]; then
    beside "Rust: the core on Windows, in the folder of make platforms" scripts/platforms.sh quick
else
    printf '\n== Other systems are tested by make platforms, which has not run here as root\n'
fi
beside "frazil-server, driven by real clients" tests/server/run.sh
beside "What \`frazil sql\` prints, on every database" tests/sql/run.sh
join
