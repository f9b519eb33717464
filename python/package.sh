#!/bin/sh
# Builds the release wheel for TARGET and the source distribution into build/package/python, and prints nothing but errors.
# usage: [TARGET=triple] python/package.sh [MATURIN-ARGUMENT]...
# What free-threaded Pythons want: python/package.sh --features free-threaded --interpreter python3.14t python3.15
set -eu
cd "$(dirname "$0")/.."
. scripts/release-settings.sh

case $TARGET in
    *-linux-gnu) set -- --zig --compatibility manylinux2014 "$@" ;;
    *-linux-musl) set -- --zig --compatibility musllinux_1_2 "$@" ;;
    *) set -- --compatibility pypi "$@" ;;
esac

out=build/package/python
rm -rf $out
maturin() {
    told=$(command maturin "$@" --manifest-path python/Cargo.toml --out $out 2>&1) || { echo "$told" >&2; exit 1; }
}
maturin sdist
maturin build --locked --release --strip --target "$TARGET" "$@"
