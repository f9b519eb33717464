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
$venv/bin/python -m sphinx -E -a -W --keep-going -q -b html -c docs/site docs build/guide
echo "The guide is build/guide/index.html"
