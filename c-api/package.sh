#!/bin/sh
# Packs the released C library, full and lean, for TARGET (default: this machine) into build/package/c/frazil-VERSION-TARGET.tar.gz.
# A .cdx.json beside it lists the crates that are linked into it.
set -eu
cd "$(dirname "$0")/.."
. scripts/release-settings.sh
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
out=$PWD/build/package/c

rm -rf "$out"
mkdir -p "$out"
pack() { # SUFFIX [CARGO-ARGUMENT]...
    name=frazil-$version-$TARGET$1
    native=${CARGO_TARGET_DIR:-$PWD/target}/$TARGET/release/frazil$1.native-static-libs
    shift
    # rustc prints the list's path at each run.
    from=$(scripts/release-build.sh --package frazil-c $features "$@" -- --print "native-static-libs=$native" 2> "$out/log") || { cat "$out/log" >&2; exit 1; }
    c-api/lay_out.sh "$from" "$native" "$out/$name" > /dev/null
    # Cargo does not strip static libraries. This machine's strip fails for other processors.
    strip -S "$out/$name/lib/libfrazil.a" 2> /dev/null || true
    python3 scripts/archive.py "$out/$name.tar.gz" "$out" "$name"
    rm -rf "${out:?}/$name" "$out/log"
    python3 scripts/sbom.py "$out/$name.cdx.json" frazil-c $features
}
features=''
pack ''
features=--no-default-features
pack -lean --config c-api/lean.toml
