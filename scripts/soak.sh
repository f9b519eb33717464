#!/usr/bin/env bash
# Everything that randomness decides, at length: models, round trips, interleavings, three languages at once.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
python/build.sh --release
node/build.sh --release
c-api/build.sh --release
PROPTEST_CASES=200000 cargo test --locked --release -p frazil --test models --test roundtrip
FRAZIL_SEEDS=200000 cargo test --locked --release -p frazil --lib simulation
tests/mutants/run.py
LOOM_MAX_PREEMPTIONS=5 RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked --release -p frazil --lib loom
FRAZIL_CROSS_IDS=30000000 .venv/bin/python -m pytest -q tests/cross
FRAZIL_FAULTS=200 FRAZIL_FAULT_IDS=10000000 FRAZIL_FAULT_WINDOW=60000 FRAZIL_FAULT_RENEW=10000 .venv/bin/python tests/faults
FRAZIL_FAULTS=100 FRAZIL_FAULT_IDS=30000000 .venv/bin/python tests/faults segments
