import frazil from './index.js'

export const {
  FrazilError, Layout, Snowflake, decodeObjectId, errors, formatId, maxObjectId, minObjectId, objectId, parseId,
  parseUuid, uuid4, uuid7, uuidTime, version,
} = frazil
