#!/bin/sh
# The adapters beside their real frameworks, on private servers; the oldest supported versions are installed under names of their own.
# usage: tests/adapters/node/run.sh [FILE...]; node/build.sh builds what is tested
set -eu
cd "$(dirname "$0")"
locked=package-lock.json installed=node_modules/.installed
# npm empties the folder first, so the mark stands for all of it.
if ! cmp -s $locked $installed; then
    echo "Installing the frameworks" >&2
    # No package needs its scripts; some would download.
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp $locked $installed
fi
# The frameworks want a newer Node than frazil does. npm has it as a package, one for each platform.
for newer in node_modules/node-*/bin; do
    PATH="$PWD/$newer:$PATH"
done
# A server that speaks MongoDB's protocol: see mongodb.mjs.
venv=../../../build/adapters-mongodb
if ! cmp -s mongodb.txt $venv/installed; then
    echo "Installing SecantusDB" >&2
    rm -rf $venv
    python3 -m venv $venv
    ../../../scripts/uv.sh pip install --quiet --python $venv/bin/python --requirement mongodb.txt
    cp mongodb.txt $venv/installed
fi
export FRAZIL_TEST_SECANTUSD="$PWD/$venv/bin/secantusd-py"
[ $# -gt 0 ] || set -- *.test.mjs
exec python3 ../../servers postgresql,mariadb -- node --test --test-timeout=900000 "$@"
