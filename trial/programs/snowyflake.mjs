// snowyflake: the generator of its page's example.
import { Epoch, Snowyflake } from 'snowyflake'
import { run } from './trial.mjs'

await run(node => new Snowyflake({ workerId: BigInt(node), epoch: Epoch.Twitter }), ids => ids.nextId())
