import { customType } from 'drizzle-orm/mysql-core'
import column from './column.js'

export const snowflake = column.snowflakeOf(customType, 'mysql')
