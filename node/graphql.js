'use strict'

const peer = require('./adapters/peer.js')
const scalar = require('./adapters/graphql-scalar.js')

const GraphQLSnowflake = scalar(peer('frazil/graphql', 'graphql', 'graphql 16 or later', () => require('graphql')))

module.exports = { GraphQLSnowflake }
