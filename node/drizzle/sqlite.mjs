import { customType } from 'drizzle-orm/sqlite-core'
import column from './column.js'

export const snowflake = column.snowflakeOf(customType, 'sqlite')
