'use strict'

const { framework } = require('./adapters/framework.js')
const scalar = require('./adapters/graphql-scalar.js')

const GraphQLSnowflake = scalar(framework('frazil/graphql', 'graphql', () => require('graphql'), '16 or later'))

module.exports = { GraphQLSnowflake }
