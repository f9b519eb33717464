import * as functions from './uuid.js'

export * from './uuid.js'
export default functions
