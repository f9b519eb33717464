// tsid-ts: a generator with a node number, and the ID as a bigint.
import { TSIDGenerator } from 'tsid-ts'
import { run } from './trial.mjs'

await run(node => new TSIDGenerator(node), ids => ids.create().toBigInt())
