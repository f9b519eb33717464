#!/usr/bin/env bash
# Compiles every crate with the oldest Rust that Cargo.toml promises (`rust-version`), which rustup installs where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1.0/p' Cargo.toml)
rustup toolchain install "$oldest" --profile minimal --no-self-update
export CARGO_TARGET_DIR=target/oldest-rust
cargo "+$oldest" check --locked --workspace --features frazil/serde,frazil/sqlx
printf 'Rust %s compiles every crate\n' "$oldest"
