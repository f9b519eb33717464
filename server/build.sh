#!/bin/sh
# Builds target/debug/frazil-server with what all suites in Rust are compiled with, so that it is compiled once.
set -eu
cd "$(dirname "$0")/.."
. scripts/rust.sh
find_cargo
aligned=frazil-c/aligned,frazil-node/aligned,frazil-python/aligned
exec cargo build --quiet --locked --workspace --bin frazil-server --features "frazil/stores,$aligned"
