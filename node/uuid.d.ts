import type { Instant } from './index.js'

/** A new version 4 UUID: 122 random bits from the operating system. */
export function uuid4(): string

/**
 * A new version 7 UUID: the time in milliseconds, then random bits. Strictly increasing within a process, over all
 * worker threads and also after the clock went back.
 *
 * With a time it is a UUID of that instant, for example for rows that are moved. UUIDs of one millisecond are then in no order.
 *
 * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for a clock or an instant before 1970 or after the year 10889.
 */
export function uuid7(time?: Instant): string

/**
 * The smallest version 7 UUID of a millisecond. In a query: `id >= uuid7Min(t)`.
 *
 * @throws {FrazilError} As `uuid7` of an instant.
 */
export function uuid7Min(time: Instant): string

/**
 * The largest version 7 UUID of the millisecond that holds an instant: `id <= uuid7Max(t)` in a query.
 *
 * @throws {FrazilError} As `uuid7` of an instant.
 */
export function uuid7Max(time: Instant): string

/**
 * Parses a UUID of any version; returns its 36 characters in lower case. Takes 8-4-4-4-12 hexadecimal digits, also in braces or after
 * `urn:uuid:`, or 32 digits without hyphens.
 *
 * @throws {FrazilError} `ID_INVALID` for any other text.
 */
export function parseUuid(text: string): string

/**
 * The time in a UUID of version 7, 6 or 1. Rounded down to ms. The text is as in `parseUuid`.
 *
 * @example
 * uuidTime('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')   // 2022-02-22T19:22:22.000Z
 *
 * @throws {FrazilError} `ID_INVALID` for another version, which holds no time, and for a time after the year 9999.
 */
export function uuidTime(text: string): Date

/** Returns whether a value of any type is a UUID that `parseUuid` accepts. */
export function isUuid(value: unknown): value is string

/**
 * The version of a UUID: 0 of the nil UUID, 15 of the one whose bits are all set.
 *
 * @throws {FrazilError} `ID_INVALID` for any other text.
 */
export function uuidVersion(text: string): number

/**
 * The 16 bytes of a UUID, as databases store it. Accepts the texts of `parseUuid`.
 *
 * @throws {FrazilError} `ID_INVALID` for any other text.
 */
export function uuidBytes(text: string): Uint8Array

/**
 * The text of a UUID of 16 bytes.
 *
 * @throws {FrazilError} `WRONG_TYPE` for anything but a Uint8Array of 16; a Buffer is one.
 */
export function uuidFromBytes(bytes: Uint8Array): string
