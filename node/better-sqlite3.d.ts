/**
 * Makes a database of better-sqlite3 return integers beyond 2^53 - 1 as exact decimal strings. Smaller ones stay numbers.
 *
 * It applies to statements that are prepared afterwards. The driver's own `safeIntegers()` returns BigInts for all columns instead.
 *
 * @example
 * const database = exactIntegers(new Database('app.db'))
 * database.prepare('select 1541815603606036481 as id, 7 as n').get()   // { id: '1541815603606036481', n: 7 }
 *
 * @returns The database.
 */
export function exactIntegers<Database extends { prepare(...given: any[]): any }>(database: Database): Database
