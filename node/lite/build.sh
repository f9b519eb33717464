#!/bin/sh
# Builds frazil/lite into node/lite/esm and node/lite/cjs.
set -eu
cd "$(dirname "$0")"
rm -rf esm cjs
for format in esm cjs; do
    case $format in esm) module=esnext ;; cjs) module=commonjs ;; esac
    ../../tests/node/node_modules/.bin/tsc --project . --module $module --outDir $format
done
echo '{ "type": "commonjs", "sideEffects": false }' > cjs/package.json
