#!/bin/sh
# Builds target/debug/frazil-server with the features of all Rust suites, so that it is compiled only once.
set -eu
cd "$(dirname "$0")/.."
. scripts/rust.sh
find_cargo
aligned=frazil-c/aligned,frazil-node/aligned,frazil-python/aligned
exec cargo build --quiet --locked --workspace --bin frazil-server --features "frazil/stores,$aligned"
