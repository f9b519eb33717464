#!/usr/bin/env bash
# Writes the generated files: errors.json, tables.ts of frazil/lite, the vectors, frazil.h, the summaries of the API, THIRD-PARTY-NOTICES.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
FRAZIL_REGENERATE=1 cargo test -q -p frazil --test values error_table >/dev/null
FRAZIL_REGENERATE=1 cargo test -q -p frazil --lib lite_tables >/dev/null
python3 tests/vectors/generate.py
tests/repo/api.py
c-api/generate.sh
scripts/notices.py
