import type { HasDefault, HasRuntimeDefault } from 'drizzle-orm'
import type { ConvertCustomConfig, MySqlCustomColumnBuilder } from 'drizzle-orm/mysql-core'
import type { Ids } from '../adapters/source.js'
import type { SnowflakeConfig, SnowflakeValues } from './column.js'

export type { Generator, Ids } from '../adapters/source.js'
export type { SnowflakeConfig } from './column.js'

type Builder<Name extends string, Config> = MySqlCustomColumnBuilder<ConvertCustomConfig<Name, SnowflakeValues<Config>>>

/** The result of {@link snowflake}. */
export type SnowflakeBuilder<Name extends string, Config> = Config extends { ids: Ids }
  ? HasRuntimeDefault<HasDefault<Builder<Name, Config>>>
  : Builder<Name, Config>

/**
 * A column of IDs in MySQL and MariaDB: a `bigint`, whose values are decimal strings or BigInts in JavaScript, never numbers.
 *
 * With `ids` an insert gives an ID to each row without one. Drizzle cannot wait for it: if the generator would wait for more than 2 ms, the
 * insert fails with `WOULD_BLOCK`. To avoid this, give the row its ID: `await ids.nextAsync()`.
 *
 * @example
 * const users = mysqlTable('users', {
 *   id: snowflake('id', { ids }).primaryKey(),
 *   invitedBy: snowflake('invited_by'),
 * })
 *
 * @throws {FrazilError} `WRONG_TYPE`, `UNKNOWN_KEY` and `OUT_OF_RANGE` for the options. Later, in queries: `ID_INVALID` and `WRONG_TYPE`
 * for a value that is not an ID; `ID_INVALID` with the fix if a driver has rounded an ID; the errors of the generator.
 */
export function snowflake<Name extends string, Config extends SnowflakeConfig = {}>(name: Name, config?: Config): SnowflakeBuilder<Name, Config>
export function snowflake<Config extends SnowflakeConfig = {}>(config?: Config): SnowflakeBuilder<'', Config>
