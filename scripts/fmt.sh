#!/usr/bin/env bash
# Formats Rust and Python.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
cargo fmt --all
python/build.sh
.venv/bin/ruff format python tests demo bench trial fuzz scripts examples docs/pictures docs/site
