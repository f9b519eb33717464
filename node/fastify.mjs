import fastify from './fastify.js'

export const { frazilPlugin } = fastify
