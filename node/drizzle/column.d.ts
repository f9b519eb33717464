import type { Ids } from '../adapters/source.js'

/** The options of a column of IDs. */
export interface SnowflakeConfig {
  /** The source of an ID for a row without one: for a key. Without it the column has no default: for a reference. */
  ids?: Ids | undefined
  /** The type of an ID in JavaScript: `'string'`, the default, or `'bigint'`. */
  mode?: 'string' | 'bigint' | undefined
}

/** The type of a column's values. */
export interface SnowflakeValues<Config> {
  data: Config extends { mode: 'bigint' } ? bigint : string
  driverData: string | number | bigint
}
