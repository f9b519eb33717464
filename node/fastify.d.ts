import type { FastifyPluginAsync } from 'fastify'
import type { Snowflake } from './index.js'
import type { IdsOptions } from './adapters/open.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** The generator that `frazilPlugin` has opened, where its option `name` says nothing else. */
    ids: Snowflake
  }
}

/** The options of {@link frazilPlugin}. */
export interface FrazilPluginOptions extends IdsOptions {
  /** The name of the server's property: `'ids'`. Another generator needs another name. */
  name?: string | undefined
}

/**
 * Opens a generator before the server is ready, as `fastify.ids`, and closes it after the last request. Needs Fastify 4 or later.
 *
 * It waits for the store as long as Fastify's `pluginTimeout` allows, 10 s if nothing is said; where it does not open, the server does not
 * start. It also refuses a JSON body in which validation has turned a number above 2^53 into a string: Fastify's validator coerces types,
 * so a rounded ID would pass. That is a `FrazilError` with the code `ID_INVALID` and status 400, which names the place.
 *
 * @example
 * app.register(frazilPlugin, { spec: 'standard store=local' })
 * app.post('/orders', async () => ({ id: app.ids.next() }))
 *
 * @throws {FrazilError} When it is registered: `UNKNOWN_KEY`, and whatever opening throws.
 */
export const frazilPlugin: FastifyPluginAsync<FrazilPluginOptions>
