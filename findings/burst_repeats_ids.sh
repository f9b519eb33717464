#!/usr/bin/env bash
# One generator of @sapphire/snowflake or snowyflake, in one process, returns the same ID several times.
#
# Both have 4,096 sequence values in a millisecond. @sapphire/snowflake 3.5.5 and snowyflake 2.0.1 start again from 0 when these are used
# up, and do not wait for the next millisecond. A loop on a current machine makes about 6,000 IDs in a millisecond. Seen: 114,425 and
# 101,874 of 300,000 IDs are duplicates. Remedy: wait when Date.now() has not changed after 4,096 IDs.
. "$(dirname "$0")/begin.sh"
npm_packages @sapphire/snowflake@3.5.5 snowyflake@2.0.1
cat > try.mjs <<'JS'
import { Snowflake } from '@sapphire/snowflake'
import { Epoch, Snowyflake } from 'snowyflake'
const sapphire = new Snowflake(new Date('2000-01-01T00:00:00.000Z'))
const snowyflake = new Snowyflake({ workerId: 1n, epoch: Epoch.Twitter })
for (const [name, mint] of [['@sapphire/snowflake', () => sapphire.generate()], ['snowyflake', () => snowyflake.nextId()]]) {
  const ids = Array.from({ length: 300_000 }, mint)
  const repeated = ids.length - new Set(ids).size
  console.error(`${name}: ${repeated} of ${ids.length} IDs repeat an earlier one`)
  console.log(`${name}, some repeated: ${repeated > 0}`)
}
JS
node try.mjs > seen
expect seen <<'SEEN'
@sapphire/snowflake, some repeated: true
snowyflake, some repeated: true
SEEN
