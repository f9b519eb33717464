#!/bin/sh
# Builds the release packages for npm into build/package/node: frazil, and the package of one platform with its addon.
# usage: [TARGET=triple] node/package.sh
set -eu
cd "$(dirname "$0")/.."
. scripts/release-settings.sh
from=$(scripts/release-build.sh --package frazil-node)
case $TARGET in
    *-windows-*) addon=frazil_node.dll ;;
    *-apple-*) addon=libfrazil_node.dylib ;;
    *) addon=libfrazil_node.so ;;
esac
npm ci --prefix tests/node --no-audit --no-fund --loglevel=error
node/lite/build.sh
rm -rf build/package/node
mkdir -p build/package/node
python3 scripts/sbom.py build/sbom/frazil-node.cdx.json frazil-node
node node/pack.mjs "$TARGET" "$from/$addon" build/package/node build/sbom/frazil-node.cdx.json
