#!/bin/sh
# Builds a release addon and the floor's, installs the peers, and measures: bench/node/run.sh
set -eu
cd "$(dirname "$0")/../.."

node/build.sh "$([ -n "${FRAZIL_BENCH_QUICK:-}" ] && echo --demo || echo --release)" >&2
cargo build --quiet --release --locked --manifest-path bench/node/floor/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/bench-node-floor"
library="${CARGO_TARGET_DIR:-target}/bench-node-floor/release/libfrazil_bench_node_floor"
if [ -f "$library.dylib" ]; then cp "$library.dylib" bench/node/floor.node; else cp "$library.so" bench/node/floor.node; fi
npm ci --prefix bench/node --no-audit --no-fund --loglevel=error >&2
exec node bench/node/bench.mjs
