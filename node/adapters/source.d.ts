/** The part of a generator that adapters need: a `Snowflake`, `Buffered`, `Segment` or `Tickets` has it. */
export interface Generator {
  next(): string
  nextAsync(): Promise<string>
  batchAsync(count: number): Promise<string[]>
}

/** A generator, a promise of one, or a function that returns either and is called once, when the first ID is needed. */
export type Ids = Generator | Promise<Generator> | (() => Generator | Promise<Generator>)
