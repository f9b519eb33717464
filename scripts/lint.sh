#!/usr/bin/env bash
# Formatting and lints; warnings fail.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- -D warnings
# Alone, with its default features, because other crates of the workspace enable more.
cargo clippy --locked -p frazil -- -D warnings
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo clippy --locked -p frazil --lib --profile test -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps -p frazil -p frazil-cli --lib
python/build.sh
.venv/bin/ruff check python tests demo bench trial fuzz scripts examples docs/pictures docs/site
.venv/bin/ruff format --check python tests demo bench trial fuzz scripts examples docs/pictures docs/site
