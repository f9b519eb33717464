#!/usr/bin/env bash
# Measures in one process, and segments on private servers: prints Markdown tables.
set -euo pipefail
cd "$(dirname "$0")"
cargo build --release --locked --quiet
python3 ../../tests/servers postgresql,mariadb -- "${CARGO_TARGET_DIR:-target}/release/frazil-bench"
