#!/usr/bin/env bash
# BullMQ refuses one ID in 256 as the ID of a job.
#
# BullMQ 6.7.0 numbers jobs that have no ID, and refuses a `jobId` that JavaScript reads as a number and prints alike. Of the texts of
# IDs with 19 digits that is the one in each step of a double: 16 of 4,096 in a row, so a test sees none of them.
# Remedy: a prefix, such as `jobId: `item-${id}``.
. "$(dirname "$0")/begin.sh"
command -v redis-server > /dev/null || { echo "redis-server 7.0 is needed" && exit 1; }
npm_packages bullmq@6.7.0 ioredis@5.11.1
cat > jobs.mjs <<'JS'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'

const connection = new Redis({ path: 'socket', maxRetriesPerRequest: null })
const queue = new Queue('mails', { connection })
for (const prefix of ['', 'item-']) {
  const refused = []
  const errors = new Set()
  for (let n = 0n; n < 4096n; n++) {
    const jobId = `${prefix}${1765646837124341760n + n}`
    await queue.add('send', {}, { jobId }).catch((error) => {
      refused.push(jobId)
      errors.add(error.message)
    })
  }
  console.log(`prefix ${JSON.stringify(prefix)}: refused ${refused.length} of 4096`, refused.slice(0, 2).join(' '), [...errors].join('; '))
}
await queue.close()
connection.disconnect()
JS
redis-server --port 0 --unixsocket socket --save '' > server.log &
trap 'kill %1; wait; rm -rf "$work"' EXIT
until [ -S socket ]; do sleep 0.1; done
node jobs.mjs | sed 's/ *$//' > seen
expect seen <<'SEEN'
prefix "": refused 16 of 4096 1765646837124341800 1765646837124342000 Custom Id cannot be integers
prefix "item-": refused 0 of 4096
SEEN
