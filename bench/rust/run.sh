#!/usr/bin/env bash
# Measures in one process, and segments on private servers: prints Markdown tables.
set -euo pipefail
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
if [ -n "${FRAZIL_BENCH_QUICK:-}" ]; then
    cargo build --profile quick --no-default-features --locked --quiet
    exec "$target/quick/frazil-bench"
fi
cargo build --release --locked --quiet
python3 ../../tests/servers postgresql,mariadb -- "$target/release/frazil-bench"
