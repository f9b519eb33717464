import type { Instant } from './index.js'

/** The parts of an ObjectId. */
export interface ObjectIdParts {
  /** The ObjectId, in lower case. */
  readonly id: string
  /** The second in which it was made. */
  readonly time: Date
  /** The 40 random bits of the process. */
  readonly random: number
  /** The counter within the process, 24 bits. */
  readonly counter: number
  /** The first 24 bits of `random`, where older drivers wrote a number of the machine. */
  readonly machine: number
  /** The last 16 bits of `random`, where older drivers wrote the process ID. */
  readonly process: number
}

/**
 * A new ObjectId of this second. Returns its 24 hexadecimal digits. Never the same twice in a process, worker threads
 * included.
 *
 * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for a clock before 1970-01-01 or after 2106-02-07T06:28:15Z.
 */
export function objectId(): string

/**
 * Decodes an ObjectId: 24 hexadecimal digits of either case.
 *
 * @example
 * decodeObjectId('507f1f77bcf86cd799439011').time   // 2012-10-17T21:13:27.000Z
 *
 * @throws {FrazilError} `ID_INVALID` for any other text.
 */
export function decodeObjectId(text: string): ObjectIdParts

/**
 * The smallest ObjectId of the second at an instant. In a query: `{ _id: { $gte: new ObjectId(minObjectId(t)) } }`.
 *
 * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant before 1970-01-01 or after 2106-02-07T06:28:15Z.
 */
export function minObjectId(time: Instant): string

/**
 * The largest ObjectId of the second that holds an instant: `{ _id: { $lte: new ObjectId(maxObjectId(t)) } }` in a query.
 *
 * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant before 1970-01-01 or after 2106-02-07T06:28:15Z.
 */
export function maxObjectId(time: Instant): string
