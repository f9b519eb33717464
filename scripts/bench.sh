#!/usr/bin/env bash
# ns per ID beside floors and peers of the same run, and the service level, in every language.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
printf '\n## Rust\n\n' && bench/rust/run.sh
printf '\n## C and C++\n\n' && bench/c/run.sh
printf '\n## Python\n\n' && bench/python/run.sh
printf '\n## Node\n\n' && bench/node/run.sh
