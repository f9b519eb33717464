#!/usr/bin/env bash
# Starts an application of examples/ with this checkout's frazil, on DATABASE_URL or else on a PostgreSQL of its own, until Ctrl-C;
# the game servers play, and are merged.
# usage: scripts/example.sh NAME
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools and disk space"
run scripts/setup.sh --example
step "Building frazil, which takes two minutes the first time"
[ ! -e "examples/$1/requirements.txt" ] || run python/build.sh --demo
[ ! -e "examples/$1/package.json" ] || run node/build.sh
if [ -e "examples/$1/play.sh" ]; then
    run c-api/build.sh
    run cargo build --locked -p frazil-cli
    step "Two servers, and their merge"
    PKG_CONFIG_PATH=$PWD/build/c/lib/pkgconfig FRAZIL=$PWD/target/debug/frazil run "examples/$1/play.sh"
    exit
fi
step "The application"
# It may run for long, and changes nothing that another run needs.
exec 9>&-
run python3 tests/examples "$1"
