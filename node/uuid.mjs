import functions from './uuid.js'

export const { isUuid, parseUuid, uuid4, uuid7, uuid7Max, uuid7Min, uuidBytes, uuidFromBytes, uuidTime, uuidVersion } = functions
export default functions
