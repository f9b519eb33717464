// snowflake-uuid: the generator of its page's example.
import { Worker } from 'snowflake-uuid'
import { run } from './trial.mjs'

await run(node => new Worker(node, 1, { workerIdBits: 5, datacenterIdBits: 5, sequenceBits: 12 }), ids => ids.nextId())
