#!/usr/bin/env node
'use strict'
// The command line, `npx frazil`: the addon does all of it.

process.exitCode = require('./frazil.node').cli(process.argv.slice(2))
