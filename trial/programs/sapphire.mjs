// @sapphire/snowflake: the generator of its page's first example, with a process number.
import { Snowflake } from '@sapphire/snowflake'
import { run } from './trial.mjs'

const open = node => Object.assign(new Snowflake(new Date('2000-01-01T00:00:00.000Z')), { processId: node })
await run(open, ids => ids.generate())
