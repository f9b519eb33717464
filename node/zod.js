'use strict'

const { framework } = require('./adapters/framework.js')
const { zodType } = require('./lite/cjs/zod.js')
const z = framework('frazil/zod', 'zod', () => require('zod/v4'), '3.25.76 or later')

function snowflakeId(options) {
  return zodType(z, options)
}

module.exports = { snowflakeId }
