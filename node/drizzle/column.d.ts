import type { Ids } from '../adapters/source.js'

/** The options of a column of IDs. */
export interface SnowflakeConfig {
  /** The source of IDs for rows without one, for a key. Without `ids` the column has no default, as a reference needs. */
  ids?: Ids | undefined
  /** The type of an ID in JavaScript: `'string'`, the default, or `'bigint'`. */
  mode?: 'string' | 'bigint' | undefined
}

/** The type of a column's values. */
export interface SnowflakeValues<Config> {
  data: Config extends { mode: 'bigint' } ? bigint : string
  driverData: string | number | bigint
}
