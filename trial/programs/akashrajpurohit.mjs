// @akashrajpurohit/snowflake-id: the generator of its page's first example.
import { SnowflakeId } from '@akashrajpurohit/snowflake-id'
import { run } from './trial.mjs'

await run(workerId => SnowflakeId({ workerId, epoch: 1597017600000 }), ids => ids.generate())
