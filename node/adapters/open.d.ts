import type { Numbers, SnowflakeOptions, Snowflake } from '../index.js'

/** The generator that an application opens when it starts: `spec` and `options`, or `open`; with neither, the environment variable FRAZIL is read. */
export interface IdsOptions {
  /** The spec line, as {@link Snowflake.open} takes it: `'standard store=postgresql://...'`. */
  spec?: string | undefined
  /** The options of {@link Snowflake.open}. */
  options?: SnowflakeOptions | undefined
  /** Opens another source of IDs, which is closed with the application: `() => Segment.open('orders', { store: 'local' })`. */
  open?: (() => Promise<Snowflake<any> | Numbers>) | undefined
}
