import frazil from './index.js'

export const {
  Buffered, FrazilError, Layout, Numbers, Segment, Snowflake, Tickets, closeAll, closeOnSigterm, decodeObjectId, errors, formatId, isUuid,
  maxObjectId, metrics, minObjectId, objectId, parseId, parseUuid, restored, stats, uuid4, uuid7, uuid7Max, uuid7Min, uuidBytes, uuidFromBytes, uuidTime, uuidVersion, version,
} = frazil
export default frazil
