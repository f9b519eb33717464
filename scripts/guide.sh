#!/usr/bin/env bash
# Builds the guide into build/guide. A broken link to a page or to a file of the repository is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/venv.sh build/guide-venv docs/site/requirements.txt
# The pages of Node's reference are made from the type declarations.
node=build/guide-node
if ! cmp -s docs/site/package-lock.json $node/installed; then
    rm -rf $node
    mkdir -p $node
    cp docs/site/package.json docs/site/package-lock.json $node
    npm ci --prefix $node --silent --no-audit --no-fund
    cp docs/site/package-lock.json $node/installed
fi
(cd $node && npx typedoc --plugin typedoc-plugin-markdown --options ../../docs/site/typedoc.json)
python3 docs/site/typescript.py build/guide-node/pages
build/guide-venv/bin/python -m sphinx -E -a -W --keep-going -q -b html -c docs/site docs build/guide
echo "The guide is build/guide/index.html"
