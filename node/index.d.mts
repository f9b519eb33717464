import * as frazil from './index.js'

export * from './index.js'
export default frazil
