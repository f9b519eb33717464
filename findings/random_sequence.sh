#!/usr/bin/env bash
# A snowflake with a random sequence repeats IDs within one process, and its IDs do not ascend.
#
# @theinternetfolks/snowflake 1.3.0 fills the bits after the time with random ones. A burst in one process repeats IDs by the
# birthday paradox: 10 of 100,000 where a millisecond held about two; more on a faster machine. Half of the IDs
# are smaller than the one before.
. "$(dirname "$0")/begin.sh"
npm_packages @theinternetfolks/snowflake@1.3.0
cat > try.mjs <<'JS'
import { Snowflake } from '@theinternetfolks/snowflake'
const ids = Array.from({ length: 1_000_000 }, () => BigInt(Snowflake.generate()))
const repeated = ids.length - new Set(ids).size
const descending = ids.filter((id, n) => n > 0 && id < ids[n - 1]).length
console.error(`${repeated} of ${ids.length} repeated, ${descending} smaller than the one before`)
console.log(`some repeated: ${repeated > 0}; more than a quarter descends: ${descending > ids.length / 4}`)
JS
node try.mjs > seen
expect seen <<'SEEN'
some repeated: true; more than a quarter descends: true
SEEN
