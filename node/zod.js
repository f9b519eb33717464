'use strict'

const peer = require('./adapters/peer.js')
const { zodType } = require('./lite/cjs/zod.js')
const z = peer('frazil/zod', 'zod/v4', 'zod 3.25.76 or later', () => require('zod/v4'))

function snowflakeId(options) {
  return zodType(z, options)
}

module.exports = { snowflakeId }
