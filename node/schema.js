'use strict'

module.exports = require('./lite/cjs/schema.js')
