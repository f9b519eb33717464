#!/bin/sh
# Builds the addon into node/frazil.node, the forms for `import`, and frazil/lite into node/lite, and installs what the tests need.
# usage: node/build.sh [--release | --demo | --lean]
#   --release: also packs build/frazil.tgz, which a project installs
#   --demo: a quick build of the addon alone; --lean: also without the clients of servers
set -eu
cd "$(dirname "$0")/.."
. scripts/rust.sh
find_cargo
profile=dev folder=debug features='--features aligned'
case ${1:-} in
    '') ;;
    --release | --demo) profile=${1#--} folder=${1#--} ;;
    --lean) profile=demo folder=demo features='--no-default-features --features aligned-lean' ;;
    *) echo "node/build.sh: $1 is none of: --release, --demo, --lean" >&2; exit 2 ;;
esac
cargo build --quiet --package frazil-node $features --profile $profile
from="${CARGO_TARGET_DIR:-target}/$folder"
case "$(uname)" in
    Darwin) library=libfrazil_node.dylib ;;
    MINGW* | MSYS*) library=frazil_node.dll ;;
    *) library=libfrazil_node.so ;;
esac

# Replaces the file instead of its content, because a running process may use the old one. A partial file never gets the name.
mkdir -p build
cp "$from/$library" build/frazil.node.new
mv build/frazil.node.new node/frazil.node
node node/modules.mjs
[ $profile != demo ] || exit 0

# npm empties the folder first, so the mark is only there after a complete installation.
locked=tests/node/package-lock.json installed=tests/node/node_modules/.installed
if ! cmp -s $locked $installed; then
    echo "Installing what the tests in Node need" >&2
    npm ci --prefix tests/node --no-audit --no-fund --loglevel=error
    cp $locked $installed
fi
node/lite/build.sh

# npm links a folder instead of installing it, and the adapters in a link do not find the project's frameworks.
if [ $profile = release ]; then
    folder=$(mktemp -d build/npm.XXXXXX)
    (cd node && npm pack --silent --pack-destination "../$folder" > /dev/null)
    mv "$folder"/frazil-*.tgz build/frazil.tgz
    rmdir "$folder"
fi
