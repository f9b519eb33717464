#!/usr/bin/env bash
# Starts an application of examples/ with this checkout's frazil, on DATABASE_URL or else on a PostgreSQL of its own, until Ctrl-C.
# usage: scripts/example.sh NAME
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools and disk space"
run scripts/setup.sh --example
step "Building frazil, which takes two minutes the first time"
[ ! -e "examples/$1/requirements.txt" ] || run python/build.sh --demo
[ ! -e "examples/$1/package.json" ] || run node/build.sh
step "The application"
# It may run for long, and changes nothing that another run needs.
exec 9>&-
run python3 tests/examples "$1"
