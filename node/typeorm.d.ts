import type { ColumnOptions, EntitySubscriberInterface, ValueTransformer } from 'typeorm'
import type { Ids } from './adapters/source.js'

export type { Generator, Ids } from './adapters/source.js'

/** The options of the decorators: those of `@Column`, but for what makes it a column of IDs. */
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
 * Decorates a column of IDs that gets none by itself: a foreign key.
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
 * In queries a value that is no ID is `ID_INVALID` or `WRONG_TYPE`; so is one that the database's driver has rounded.
 */
export const snowflakeColumn: Readonly<{ type: 'bigint'; transformer: ValueTransformer }>

/**
 * Makes the subscriber that gives new entities their IDs, for `subscribers` of a `DataSource`.
 *
 * It acts in `save`, `insert`, `upsert` and the query builder's inserts, on primary columns of IDs that have none and refer to nothing. It
 * may wait, as `nextAsync` does. What tells TypeORM to call no listeners, also gets no IDs: `callListeners(false)`,
 * `save(..., { listeners: false })`, `INSERT ... SELECT`.
 *
 * @example
 * new DataSource({ type: 'postgres', url, entities: [User], subscribers: [snowflakeSubscriber(ids)] })
 *
 * @throws {FrazilError} `WRONG_TYPE` for what is no generator; an insert is refused with what the generator throws. Every query is refused with
 * `ID_INVALID` where the driver would round IDs: better-sqlite3 without `exactIntegers`, MySQL's with `supportBigNumbers: false`.
 */
export function snowflakeSubscriber(ids: Ids): new () => EntitySubscriberInterface
