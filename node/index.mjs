import frazil from './index.js'

export const { FrazilError, Layout, Snowflake, errors, formatId, parseId, version } = frazil
