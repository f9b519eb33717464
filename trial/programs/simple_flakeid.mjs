// simple-flakeid: the class that the package exports, and the call that its page says always returns a bigint.
import { SnowflakeIdv1 } from 'simple-flakeid'
import { run } from './trial.mjs'

await run(node => new SnowflakeIdv1({ workerId: node }), ids => ids.NextBigId())
