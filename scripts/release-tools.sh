#!/bin/sh
# Installs the tools of `make package` into build/tools, unless they exist.
set -eu
cd "$(dirname "$0")/.."
wanted=scripts/release-requirements.txt
cmp -s $wanted build/tools/installed && exit
rm -rf build/tools
python3 -m venv build/tools
# Windows calls the folder Scripts.
PATH=$PWD/build/tools/bin:$PWD/build/tools/Scripts:$PATH
python -m pip install --quiet --disable-pip-version-check --requirement $wanted >&2
cp $wanted build/tools/installed
