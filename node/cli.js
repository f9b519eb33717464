#!/usr/bin/env node
'use strict'
// The command line, `npx frazil`, which is in the addon.

try {
  process.exitCode = require('./native.js').cli(process.argv.slice(2))
} catch (error) {
  console.error(`frazil: ${error.message}`)
  process.exitCode = 1
}
