#!/bin/sh
# Builds the addon into node/frazil.node, frazil/lite into node/lite, and installs what the tests need.
# usage: node/build.sh [--release]
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --package frazil-node "$@"
profile=debug
for argument; do [ "$argument" = --release ] && profile=release; done
from="${CARGO_TARGET_DIR:-target}/$profile"
case "$(uname)" in
    Darwin) library=libfrazil_node.dylib ;;
    MINGW* | MSYS*) library=frazil_node.dll ;;
    *) library=libfrazil_node.so ;;
esac

# A new file, not new content: a running process keeps the old one.
cp "$from/$library" node/frazil.node.new
mv node/frazil.node.new node/frazil.node
npm ci --prefix tests/node --no-audit --no-fund --loglevel=error
node/lite/build.sh
