import { Worker } from 'node:worker_threads'
import { FrazilError, Snowflake } from 'frazil'
import { snowflakeId } from 'frazil/schema'
import body from './body.cjs'

await body({ FrazilError, Snowflake }, { snowflakeId }, { Worker })
