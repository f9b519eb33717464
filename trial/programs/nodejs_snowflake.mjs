// nodejs-snowflake: the generator of its page's first example, with an epoch and a number.
import { Snowflake } from 'nodejs-snowflake'
import { run } from './trial.mjs'

await run(node => new Snowflake({ custom_epoch: 1577836800000, instance_id: node }), ids => ids.getUniqueID())
