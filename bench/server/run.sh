#!/bin/sh
# Builds frazil-server as it is released, and measures it, redis-server and hyper alone: prints Markdown tables.
# usage: bench/server/run.sh                  what it does in a second, how long answers take, idle connections
#        bench/server/run.sh count [TITLE]    instructions and system calls of a request; of the rows that have TITLE
#        bench/server/run.sh memory SECONDS   its memory in each minute under load in every protocol; fails where it grows
set -eu
cd "$(dirname "$0")/../.."
# Less optimised, and built sooner.
profile=release
[ -z "${FRAZIL_BENCH_QUICK:-}" ] || profile=counted
cargo build --quiet --locked --profile $profile -p frazil-server
cargo build --quiet --locked --release --manifest-path bench/server/Cargo.toml --target-dir target/bench-server
what=${1:-bench}
[ $# -eq 0 ] || shift
exec python3 "bench/server/$what.py" "${CARGO_TARGET_DIR:-target}/$profile/frazil-server" target/bench-server/release "$@"
