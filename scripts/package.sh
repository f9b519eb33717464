#!/usr/bin/env bash
# Builds what is released for this machine, shows its sizes, and installs and runs all of it in clean environments.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools, servers, ports and disk space"
run scripts/setup.sh --package
for language in c-api python node; do
    step "Release artefacts: $language"
    run $language/package.sh
done

step "Commands that install what was built"
echo "npm install $(echo "$PWD"/build/package/node/*.tgz)"
echo "pip install $(echo "$PWD"/build/package/python/*.whl)"
echo "tar -xzf $(ls "$PWD"/build/package/c/*.tar.gz | grep -v lean)"

step "Sizes, against 7.5 MB with the command line, 6 MB for the C library and 1.33 MB for the lean one"
run python3 scripts/sizes.py build/package

step "Installed and run in clean environments"
# The tests' own tools.
run python/build.sh
run env FRAZIL_PACKAGES=build/package .venv/bin/python -m pytest -q -rs tests/package
