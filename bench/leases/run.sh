#!/bin/sh
# Measures the cost of many leases in one process on a private Redis, and whether they are renewed in time. Prints Markdown tables.
# usage: bench/leases/run.sh [LEASES [ROUND_TRIP_MS [SECONDS [SPEC]]]]
set -eu
cd "$(dirname "$0")"
cargo build --release --locked --quiet
exec python3 ../../tests/servers redis -- sh -c 'exec target/release/frazil-bench-leases "$FRAZIL_TEST_REDIS" "$@"' \
    leases "${1:-300}" "${2:-40}" "${3:-20}" "${4-window=7s renew=2s}"
