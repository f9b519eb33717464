#!/bin/sh
# Starts the message board with four worker processes; the first start installs what it needs into .venv.
# usage: DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE ./run.sh
# also read: FRAZIL (the spec line), PORT (8000), WORKERS (4)
set -eu
cd "$(dirname "$0")"
: "${DATABASE_URL:?is missing: DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE ./run.sh}"
# The database that holds the rows also leases the node numbers.
export DATABASE_URL FRAZIL="${FRAZIL:-standard store=env:DATABASE_URL}"

# The mark is written last, so a half-made installation is made again.
if ! cmp -s requirements.txt .venv/installed; then
    python3 -m venv .venv
    .venv/bin/pip install --quiet --requirement requirements.txt
    cp requirements.txt .venv/installed
fi
.venv/bin/python manage.py migrate --verbosity 0
# --preload imports the program once, before it forks: each worker leases its own node number afterwards.
exec .venv/bin/gunicorn --preload --bind "127.0.0.1:${PORT:-8000}" --workers "${WORKERS:-4}" --threads 4 board.wsgi
