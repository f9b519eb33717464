#!/usr/bin/env bash
# Sets the version wherever it is written: scripts/version.sh 0.2.0. tests/repo checks that all places agree.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ ${1:-} =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "usage: scripts/version.sh MAJOR.MINOR.PATCH" >&2; exit 2; }
new=$1
old=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)

sed -i "s/^version = \"$old\"$/version = \"$new\"/; /^frazil\(-[a-z]*\)\? = /s/version = \"\(=\?\)$old\"/version = \"\1$new\"/" Cargo.toml
sed -i "s/^  \"version\": \"$old\"/  \"version\": \"$new\"/" node/package.json packaging/vcpkg/frazil/vcpkg.json
# A released version keeps its heading.
if grep -q "^## $old (unreleased)$" CHANGELOG.md; then
    sed -i "s/^## $old (unreleased)$/## $new (unreleased)/" CHANGELOG.md
else
    sed -i "0,/^## /s//## $new (unreleased)\n\n&/" CHANGELOG.md
fi
IFS=. read -r major minor patch <<< "$new"
sed -i "s/^\(#define FRAZIL_VERSION_MAJOR\) .*/\1 $major/; s/^\(#define FRAZIL_VERSION_MINOR\) .*/\1 $minor/
    s/^\(#define FRAZIL_VERSION_PATCH\) .*/\1 $patch/" include/frazil.h
# The guide names the library as build.rs does: below 1.0 by the minor version.
abi() { case $1 in 0.*) echo "${1%.*}" ;; *) echo "${1%%.*}" ;; esac; }
sed -i "s/frazil-$old-/frazil-$new-/; s/libfrazil\.so\.$(abi "$old")\b/libfrazil.so.$(abi "$new")/g
    s/libfrazil\.$(abi "$old")\.dylib/libfrazil.$(abi "$new").dylib/g; s/find_package(frazil ${old%.*}\b/find_package(frazil ${new%.*}/" docs/c-cpp.md
sed -i "s/frazil-$old-/frazil-$new-/" docs/start.md
sed -i "s/frazil-server:$old\$/frazil-server:$new/" server/dist/compose.yaml server/dist/kubernetes/deployment.yaml
# cargo and npm write their own lock files.
for locked in . bench/rust fuzz trial; do
    cargo update --quiet --workspace --manifest-path "$locked/Cargo.toml"
done
for locked in tests/node tests/adapters/node bench/node trial; do
    npm install --prefix $locked --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error
done
