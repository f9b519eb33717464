import frazil from './index.js'

export const {
  Buffered, FrazilError, Layout, Numbers, Segment, Snowflake, Tickets, closeAll, closeOnSigterm, compareIds, errors, formatId,
  metrics, parseId, restored, stats, version,
} = frazil
export default frazil
