#!/bin/sh
# Tests the adapters with their real frameworks, on private servers. The oldest supported versions are installed under other names.
# usage: tests/adapters/node/run.sh [--test-name-pattern=PATTERN | FILE...]; node/build.sh builds what is tested
set -eu
cd "$(dirname "$0")"
locked=package-lock.json installed=node_modules/.installed
# npm empties the folder first, so this file is there only if all packages are.
if ! cmp -s $locked $installed; then
    echo "Installing the frameworks" >&2
    # No package needs its scripts, and some scripts would download files.
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp $locked $installed
fi
# The frameworks need a newer Node than frazil does. npm has Node as a package for each platform.
for newer in node_modules/node-*/bin; do
    PATH="$PWD/$newer:$PATH"
done
# A server that speaks MongoDB's protocol: see mongodb.mjs.
venv=../../../build/adapters-mongodb
../../../scripts/venv.sh $venv mongodb.txt
export FRAZIL_TEST_SECANTUSD="$PWD/$venv/bin/secantusd-py"
case ${1:-} in '' | --*) set -- "$@" *.test.mjs ;; esac
exec python3 ../../servers postgresql,mariadb -- node --test --test-timeout=900000 "$@"
