#!/usr/bin/env bash
# Builds the guide into build/guide; a link within it, or to a file of the repository, that leads nowhere is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=docs/site/requirements.txt
venv=build/guide-venv
if ! cmp -s $tools $venv/installed; then
    echo "Installing what the guide is built with" >&2
    rm -rf $venv
    python3 -m venv $venv
    $venv/bin/pip --quiet --disable-pip-version-check install --requirement $tools
    cp $tools $venv/installed
fi
# The pages of Node's reference are made of the type declarations.
node=build/guide-node
if ! cmp -s docs/site/package-lock.json $node/installed; then
    rm -rf $node
    mkdir -p $node
    cp docs/site/package.json docs/site/package-lock.json $node
    npm ci --prefix $node --silent --no-audit --no-fund
    cp docs/site/package-lock.json $node/installed
fi
(cd $node && npx typedoc --plugin typedoc-plugin-markdown --options ../../docs/site/typedoc.json)
# All of them become one page.
sed -i 's/(index\.md#/(#/g' $node/pages/*.md
$venv/bin/python -m sphinx -E -a -W --keep-going -q -b html -c docs/site docs build/guide
echo "The guide is build/guide/index.html"
