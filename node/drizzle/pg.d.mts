import type { HasDefault, HasRuntimeDefault } from 'drizzle-orm'
import type { ConvertCustomConfig, PgCustomColumnBuilder } from 'drizzle-orm/pg-core'
import type { Ids } from '../adapters/source.js'
import type { SnowflakeConfig, SnowflakeValues } from './column.js'

export type { Generator, Ids } from '../adapters/source.js'
export type { SnowflakeConfig } from './column.js'

type Builder<Name extends string, Config> = PgCustomColumnBuilder<ConvertCustomConfig<Name, SnowflakeValues<Config>>>

/** The result of {@link snowflake}. */
export type SnowflakeBuilder<Name extends string, Config> = Config extends { ids: Ids }
  ? HasRuntimeDefault<HasDefault<Builder<Name, Config>>>
  : Builder<Name, Config>

/**
 * A column of IDs in PostgreSQL: a `bigint`, whose values are decimal strings or BigInts in JavaScript, never numbers.
 *
 * With `ids` an insert gives an ID to each row that comes without one. Drizzle asks for it where it cannot wait: where the generator would
 * wait for more than 2 ms the insert is refused with `WOULD_BLOCK`; a row that brings `await ids.nextAsync()` never is.
 *
 * @example
 * const users = pgTable('users', {
 *   id: snowflake('id', { ids }).primaryKey(),
 *   invitedBy: snowflake('invited_by'),
 * })
 *
 * @throws {FrazilError} `WRONG_TYPE`, `UNKNOWN_KEY` and `OUT_OF_RANGE` for the options. Later, in queries: `ID_INVALID` and `WRONG_TYPE`
 * for a value that is no ID; `ID_INVALID` where a driver has rounded one, and how it is told not to; what the generator throws.
 */
export function snowflake<Name extends string, Config extends SnowflakeConfig = {}>(name: Name, config?: Config): SnowflakeBuilder<Name, Config>
export function snowflake<Config extends SnowflakeConfig = {}>(config?: Config): SnowflakeBuilder<'', Config>
