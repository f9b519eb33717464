#!/bin/sh
# Builds the programs that measure a fleet, and runs them: docs/capacity.md and docs/production.md have the figures. Prints Markdown tables.
# usage: bench/fleet/run.sh costs [STORES]     what a start, a renewal and a release cost each store
#        bench/fleet/run.sh tier [PROCESSES]   leases through three replicas of frazil-server onto one PostgreSQL
#        bench/fleet/run.sh simulation [PROCESSES [FILE]]   100,000 processes in simulated time; FILE gets the data of the plot
set -eu
cd "$(dirname "$0")/../.."
if [ "${1:-}" = simulation ]; then
    FRAZIL_FLEET=${2:-100000} FRAZIL_FLEET_OUT=${3:-/dev/null}
    export FRAZIL_FLEET FRAZIL_FLEET_OUT
    exec cargo test --quiet --locked --release -p frazil --lib fleet -- --nocapture
fi
cargo build --quiet --locked --release -p frazil-server
cargo build --quiet --locked --release --manifest-path bench/leases/Cargo.toml
exec python3 bench/fleet/costs.py --crowd bench/leases/target/release/crowd --server "${CARGO_TARGET_DIR:-target}/release/frazil-server" "$@"
