#!/usr/bin/env bash
# ns per ID beside floors and peers of the same run, and the service level, in every language.
set -euo pipefail
. "$(dirname "$0")/begin.sh"
run scripts/setup.sh
printf '\n## Rust\n\n' && run bench/rust/run.sh
printf '\n## C and C++\n\n' && run bench/c/run.sh
printf '\n## Python\n\n' && run bench/python/run.sh
printf '\n## Node\n\n' && run bench/node/run.sh
