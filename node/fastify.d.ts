import type { FastifyPluginAsync } from 'fastify'
import type { Snowflake } from './index.js'
import type { IdsOptions } from './adapters/open.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** The generator that `frazilPlugin` has opened, unless its option `name` names another property. */
    ids: Snowflake
  }
}

/** The options of {@link frazilPlugin}. */
export interface FrazilPluginOptions extends IdsOptions {
  /** The name of the server's property; the default is `'ids'`. A second generator needs another name. */
  name?: string | undefined
}

/**
 * Opens a generator before the server is ready, as `fastify.ids`, and closes it after the last request. Needs Fastify 4 or later.
 *
 * It waits for the store as long as Fastify's `pluginTimeout` allows, by default 10 s. If the generator cannot be opened, the server does
 * not start. It also refuses a JSON body in which validation has turned a number above 2^53 into a string, because that hides a rounded ID.
 * The error is a `FrazilError` with the code `ID_INVALID` and the status 400, and names the path.
 *
 * @example
 * app.register(frazilPlugin, { spec: 'standard store=local' })
 * app.post('/orders', async () => ({ id: app.ids.next() }))
 *
 * @throws {FrazilError} On registration: `UNKNOWN_KEY`, and the errors of opening.
 */
export const frazilPlugin: FastifyPluginAsync<FrazilPluginOptions>
