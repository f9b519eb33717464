#!/bin/sh
# The adapters beside their real frameworks, on private servers; the oldest supported versions are installed under names of their own.
# usage: tests/adapters/node/run.sh [FILE...]; node/build.sh builds what is tested
set -eu
cd "$(dirname "$0")"
locked=package-lock.json installed=node_modules/.installed
# npm empties the folder first, so the mark stands for all of it.
if ! cmp -s $locked $installed; then
    echo "Installing the frameworks" >&2
    npm ci --no-audit --no-fund --loglevel=error
    cp $locked $installed
fi
[ $# -gt 0 ] || set -- *.test.mjs
exec python3 ../../servers postgresql,mariadb -- node --test "$@"
