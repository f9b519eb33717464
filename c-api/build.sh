#!/bin/sh
# Builds the libraries and puts them, with the headers, where a C compiler finds them: build/c.
# usage: c-api/build.sh [--release]
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --package frazil-c "$@"
profile=debug
for argument; do [ "$argument" = --release ] && profile=release; done
from="${CARGO_TARGET_DIR:-target}/$profile"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

rm -rf build/c/lib build/c/include
mkdir -p build/c/lib build/c/include
cp "$from/libfrazil.so" "build/c/lib/libfrazil.so.$version"
ln -s "libfrazil.so.$version" "build/c/lib/libfrazil.so.${version%%.*}"
ln -s "libfrazil.so.${version%%.*}" build/c/lib/libfrazil.so
cp "$from/libfrazil.a" build/c/lib/
cp include/frazil.h include/frazil.hpp build/c/include/
