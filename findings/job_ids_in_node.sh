#!/usr/bin/env bash
# BullMQ refuses one ID in 16, or in 256, as the ID of a job.
#
# BullMQ 6.7.0 numbers jobs that have no ID, and refuses a `jobId` that JavaScript reads as a number and prints alike. Of the texts of
# large IDs that is one in each step of a double: one of 16 around 10^17, and one of 256 around 1.7 x 10^18. A test of a few jobs passes.
# Remedy: a prefix, such as `jobId: `item-${id}``.
. "$(dirname "$0")/begin.sh"
command -v redis-server > /dev/null || { echo "redis-server 7.0 is needed" && exit 1; }
npm_packages bullmq@6.7.0 ioredis@5.11.1
cat > jobs.mjs <<'JS'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'

const connection = new Redis({ path: 'socket', maxRetriesPerRequest: null })
const queue = new Queue('mails', { connection })
for (const [prefix, from] of [['', 110_000_000_000_000_000n], ['', 1765646837124341760n], ['item-', 1765646837124341760n]]) {
  const refused = []
  const errors = new Set()
  for (let n = 0n; n < 4096n; n++) {
    const jobId = `${prefix}${from + n}`
    await queue.add('send', {}, { jobId }).catch((error) => {
      refused.push(jobId)
      errors.add(error.message)
    })
  }
  console.log(`from ${prefix}${from}: refused ${refused.length} of 4096`, refused.slice(0, 2).join(' '), [...errors].join('; '))
}
await queue.close()
connection.disconnect()
JS
redis-server --port 0 --unixsocket socket --save '' > server.log &
trap 'kill %1; wait; rm -rf "$work"' EXIT
until [ -S socket ]; do sleep 0.1; done
node jobs.mjs | sed 's/ *$//' > seen
expect seen <<'SEEN'
from 110000000000000000: refused 256 of 4096 110000000000000000 110000000000000020 Custom Id cannot be integers
from 1765646837124341760: refused 16 of 4096 1765646837124341800 1765646837124342000 Custom Id cannot be integers
from item-1765646837124341760: refused 0 of 4096
SEEN
