#!/usr/bin/env bash
# Everything that randomness decides, at length: models, round trips, interleavings, three languages at once.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools, servers, ports and disk space"
run scripts/setup.sh
step "Builds"
run python/build.sh --release
run node/build.sh --release
run c-api/build.sh --release
step "Models and round trips"
run env PROPTEST_CASES=200000 cargo test --locked --release -p frazil --test values -- models roundtrip
step "Broken requests to the server: a million of each kind"
run env PROPTEST_CASES=1000000 cargo test --locked --release -p frazil-server any_
step "Forks at any moment, and four hundred processes that open at once"
run env FRAZIL_STORM_MS=60000 FRAZIL_CROWD=400 cargo test --locked --release -p frazil --test storm --test fresh --test worker
step "A thousand processes that start at once on each server"
run env FRAZIL_CROWD=1000 python3 tests/servers all -- \
    cargo test --locked --release -p frazil --features stores --test starts -- --ignored --nocapture
step "A thousand copies of a running process"
run env FRAZIL_COPIES=1000 python3 tests/servers postgresql -- \
    cargo test --locked --release -p frazil --features stores --test copies -- --ignored --nocapture
step "The lease's protocol in its simulation, and bugs planted into it"
run env FRAZIL_SEEDS=200000 cargo test --locked --release -p frazil --lib simulation
run tests/mutants/run.py
step "A fleet of a hundred thousand processes on one store, in simulated time"
run bench/fleet/run.sh simulation
step "loom"
run env LOOM_MAX_PREEMPTIONS=5 RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked --release -p frazil --lib loom
step "Three languages at once"
run env FRAZIL_CROSS_IDS=30000000 .venv/bin/python -m pytest -q tests/cross
step "frazil-server: three replicas behind a balancer, six clients, and everything around them breaks"
run env FRAZIL_SHOW_IDS=10000000 tests/server/run.sh -rP -k the_show
step "Faults"
run env FRAZIL_FAULTS=200 FRAZIL_FAULT_IDS=10000000 FRAZIL_FAULT_WINDOW=60000 FRAZIL_FAULT_RENEW=10000 .venv/bin/python tests/faults
run env FRAZIL_FAULTS=100 FRAZIL_FAULT_IDS=30000000 .venv/bin/python tests/faults segments
step "frazil-server: its memory, over an hour of every protocol"
run bench/server/run.sh memory 3600
