import * as functions from './objectid.js'

export * from './objectid.js'
export default functions
