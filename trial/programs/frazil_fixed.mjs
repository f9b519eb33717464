// frazil, a fixed number.
import { Snowflake } from 'frazil'
import { run } from './trial.mjs'

await run(node => Snowflake.open('standard', { node }), ids => ids.next())
