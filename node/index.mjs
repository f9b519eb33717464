import frazil from './index.js'

export const {
  Buffered, FrazilError, Layout, Numbers, Segment, Snowflake, Tickets, closeOnSigterm, decodeObjectId, errors, formatId, maxObjectId,
  minObjectId, objectId, parseId, parseUuid, uuid4, uuid7, uuidTime, version,
} = frazil
