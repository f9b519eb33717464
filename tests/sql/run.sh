#!/bin/sh
# Tests the output of `frazil sql` on real databases. ClickHouse and DuckDB come from PyPI: 230 MB of downloads, 730 MB on disk.
# usage: tests/sql/run.sh [PYTEST ARGUMENT...]; python/build.sh builds the wheel that is tested
set -eu
cd "$(dirname "$0")/../.."
here=tests/sql
venv=build/tests-sql

pip() { scripts/uv.sh pip "$@" --quiet --python "$venv/bin/python"; }
# The marks are written last, so a half-made installation is made again.
[ -e "$venv/made" ] || { rm -rf "$venv" && python3 -m venv "$venv" && : > "$venv/made"; }
if ! cmp -s $here/requirements.txt "$venv/installed"; then
    echo "Installing the databases" >&2
    # ClickHouse without pandas and pyarrow, which its other interfaces use.
    grep -v '^chdb-core' $here/requirements.txt | pip install --requirement -
    pip install --no-deps "$(grep '^chdb-core' $here/requirements.txt)"
    cp $here/requirements.txt "$venv/installed"
fi
pip install --no-deps --reinstall build/wheels/frazil-*.whl
# PostgreSQL's package has the sources of locales, but not the compiled locales.
export LOCPATH="$PWD/build/locales"
[ -e "$LOCPATH/en_US.utf8" ] || { mkdir -p "$LOCPATH" && localedef -i en_US -f UTF-8 "$LOCPATH/en_US.utf8"; }
exec python3 tests/servers postgresql,mariadb -- "$venv/bin/python" -m pytest -q "$@" $here
