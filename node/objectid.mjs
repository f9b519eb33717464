import functions from './objectid.js'

export const { decodeObjectId, maxObjectId, minObjectId, objectId } = functions
export default functions
