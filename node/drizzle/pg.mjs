import { customType } from 'drizzle-orm/pg-core'
import column from './column.js'

export const snowflake = column.snowflakeOf(customType, 'pg')
