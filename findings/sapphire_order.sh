#!/usr/bin/env bash
# IDs of one @sapphire/snowflake generator do not ascend: the counter wraps in the middle of a millisecond.
#
# @sapphire/snowflake 3.5.5 counts from 0 to 4095 over all milliseconds, and does not begin anew with each. Where it wraps
# inside a millisecond, the next ID is smaller than the one before. Of 200,000 IDs some 48 were (about one of 4,096): the
# "largest ID so far" of a page or a cursor skips rows then.
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
