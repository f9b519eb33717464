#!/bin/sh
# Starts the message board with four worker processes; the first start installs what it needs into node_modules.
# usage: DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE ./run.sh
# also read: FRAZIL (the spec line), PORT (8000), WORKERS (4)
set -eu
cd "$(dirname "$0")"
: "${DATABASE_URL:?is missing: DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE ./run.sh}"
# The database that holds the rows also leases the node numbers.
export DATABASE_URL FRAZIL="${FRAZIL:-standard store=env:DATABASE_URL}"

# The mark is written last, so a half-made installation is made again.
if ! cmp -s package.json node_modules/.installed; then
    npm install --omit=dev --no-audit --no-fund --loglevel=error
    cp package.json node_modules/.installed
fi
exec node main.js
