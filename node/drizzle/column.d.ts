import type { Ids } from '../adapters/source.js'

/** The options of a column of IDs. */
export interface SnowflakeConfig {
  /** Where a row gets an ID from that comes without one: for a key. Without it the column has no default: for a reference. */
  ids?: Ids | undefined
  /** What an ID is in JavaScript: `'string'`, the default, or `'bigint'`. */
  mode?: 'string' | 'bigint' | undefined
}

/** The type of a column's values. */
export interface SnowflakeValues<Config> {
  data: Config extends { mode: 'bigint' } ? bigint : string
  driverData: string | number | bigint
}
