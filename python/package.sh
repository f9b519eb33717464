#!/bin/sh
# Builds the release wheel for TARGET and the source distribution into build/package/python, and prints nothing but errors.
# usage: [TARGET=triple] python/package.sh [MATURIN-ARGUMENT]...
# For free-threaded Pythons: python/package.sh --features free-threaded --interpreter python3.14t python3.15
set -eu
cd "$(dirname "$0")/.."
. scripts/release-settings.sh

case $TARGET in
    *-linux-gnu*) set -- --zig --compatibility manylinux2014 "$@" ;;
    *-linux-musl*) set -- --zig --compatibility musllinux_1_2 "$@" ;;
    *) set -- --compatibility pypi "$@" ;;
esac

# Without symbolic links, git would check out a file with the link's path instead of the licence.
for file in LICENSE-APACHE LICENSE-MIT THIRD-PARTY-NOTICES.txt; do
    cmp -s "$file" "python/$file" || { echo "python/$file is not a symbolic link: set git's core.symlinks, and check it out again" >&2; exit 1; }
done

out=build/package/python
rm -rf $out
maturin() {
    output=$(command maturin "$@" --manifest-path python/Cargo.toml --out $out 2>&1) || { echo "$output" >&2; exit 1; }
}
maturin sdist
# PEP 770: a wheel has its list of crates in `sboms`.
python3 scripts/sbom.py build/sbom/frazil.cdx.json frazil-python
maturin build --sbom-include "$PWD/build/sbom/frazil.cdx.json" --locked --release --target "$TARGET" "$@"
