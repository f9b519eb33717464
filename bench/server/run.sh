#!/bin/sh
# Builds frazil-server as it is released, and measures it beside redis-server and hyper alone: prints Markdown tables.
# usage: bench/server/run.sh [memory SECONDS]: the same, or what memory the server has in so long under load
set -eu
cd "$(dirname "$0")/../.."
# Less optimised, and built sooner.
profile=release
[ -z "${FRAZIL_BENCH_QUICK:-}" ] || profile=counted
cargo build --quiet --locked --profile $profile -p frazil-server
cargo build --quiet --locked --release --manifest-path bench/server/Cargo.toml --target-dir target/bench-server
exec python3 bench/server/bench.py "${CARGO_TARGET_DIR:-target}/$profile/frazil-server" target/bench-server/release "$@"
