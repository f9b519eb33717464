#!/usr/bin/env bash
# IDs of one @sapphire/snowflake generator do not ascend: the counter wraps in the middle of a millisecond.
#
# @sapphire/snowflake 3.5.5 counts from 0 to 4095 across milliseconds, without a restart in each. If the counter wraps within
# a millisecond, the next ID is smaller than the one before. That happened to some 48 of 200,000 IDs (about one of 4,096).
# A page or a cursor that continues after the "largest ID so far" then skips rows.
. "$(dirname "$0")/begin.sh"
npm_packages @sapphire/snowflake@3.5.5
cat > try.mjs <<'JS'
import { Snowflake } from '@sapphire/snowflake'
const ids = new Snowflake(1420070400000n)
let descending = 0
let last = 0n
for (let n = 0; n < 200_000; n++) {
  const id = ids.generate()
  if (id < last) descending++
  last = id
}
console.error(`${descending} of 200000 IDs are smaller than the one before`)
console.log(`more than ten: ${descending > 10}`)
JS
node try.mjs > seen
expect seen <<'SEEN'
more than ten: true
SEEN
