#!/bin/sh
# Builds a crate as it is released (optimised, stripped, and on Linux for the oldest glibc that Rust supports, from any
# machine), and prints the folder of the artefacts.
# usage: [TARGET=triple] scripts/release-build.sh --package frazil-c [CARGO-ARGUMENT]... [-- RUSTC-ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."
. scripts/release-settings.sh

case $TARGET in
    *-linux-gnu*) cargo-zigbuild rustc --quiet --locked --release --target "$TARGET.2.17" "$@" ;;
    *-linux-*) cargo-zigbuild rustc --quiet --locked --release --target "$TARGET" "$@" ;;
    *) cargo rustc --quiet --locked --release --target "$TARGET" "$@" ;;
esac
echo "${CARGO_TARGET_DIR:-target}/$TARGET/release"
