// frazil, a number leased from the folder store.
import { Snowflake } from 'frazil'
import { run } from './trial.mjs'

await run(() => Snowflake.open('standard', { store: 'local' }), ids => ids.next())
