import type { ColumnOptions, EntitySubscriberInterface, ValueTransformer } from 'typeorm'
import type { Ids } from './adapters/source.js'

export type { Generator, Ids } from './adapters/source.js'

/** The options of the decorators: those of `@Column`, except the ones that the decorators set. */
export type SnowflakeColumnOptions = Omit<ColumnOptions, 'type' | 'transformer' | 'array' | 'width' | 'unsigned' | 'zerofill' | 'generated'>

/**
 * Decorates a primary key of IDs: a `bigint` in the database, a decimal string in the entity.
 *
 * A new entity gets its ID from {@link snowflakeSubscriber}.
 *
 * @example
 * @Entity()
 * class User {
 *   @PrimarySnowflakeColumn() id!: string
 * }
 */
export function PrimarySnowflakeColumn(options?: SnowflakeColumnOptions): PropertyDecorator

/**
 * Decorates a column of IDs that gets no ID automatically: a foreign key.
 *
 * @example
 * @Entity()
 * class Post {
 *   @PrimarySnowflakeColumn() id!: string
 *   @SnowflakeColumn() authorId!: string
 *   @ManyToOne(() => User) @JoinColumn({ name: 'authorId' }) author!: User
 * }
 */
export function SnowflakeColumn(options?: SnowflakeColumnOptions): PropertyDecorator

/**
 * The columns of an `EntitySchema`: `columns: { id: { ...snowflakeColumn, primary: true }, authorId: snowflakeColumn }`.
 *
 * In queries, a value that is not an ID, or that the database's driver has rounded, is `ID_INVALID` or `WRONG_TYPE`.
 */
export const snowflakeColumn: Readonly<{ type: 'bigint'; transformer: ValueTransformer }>

/**
 * Makes the subscriber that gives new entities their IDs, for `subscribers` of a `DataSource`.
 *
 * It acts in `save`, `insert`, `upsert` and the query builder's inserts, for primary columns of IDs that are empty and are not foreign
 * keys. It may wait, as `nextAsync` does. Options that skip TypeORM's listeners also skip IDs: `callListeners(false)`, `save(..., {
 * listeners: false })`, `INSERT ... SELECT`.
 *
 * @example
 * new DataSource({ type: 'postgres', url, entities: [User], subscribers: [snowflakeSubscriber(ids)] })
 *
 * @throws {FrazilError} `WRONG_TYPE` for a value that is not a generator; an insert throws the errors of the generator. Every query is refused with
 * `ID_INVALID` where the driver would round IDs: better-sqlite3 without `exactIntegers`, MySQL's with `supportBigNumbers: false`.
 */
export function snowflakeSubscriber(ids: Ids): new () => EntitySubscriberInterface
