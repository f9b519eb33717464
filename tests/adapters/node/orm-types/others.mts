import Database from 'better-sqlite3'
import { Snowflake } from 'frazil'
import { exactIntegers } from 'frazil/better-sqlite3'
import { jsonReplacer, parseJson } from 'frazil/json'
import { snowflakeId, snowflakeType } from 'frazil/mongoose'
import { snowflakes } from 'frazil/prisma'
import { PrimarySnowflakeColumn, SnowflakeColumn, snowflakeColumn, snowflakeSubscriber } from 'frazil/typeorm'
import mongoose, { Schema, type InferSchemaType } from 'mongoose'
import { DataSource, Entity, EntitySchema } from 'typeorm'
import { PrismaClient } from '../prisma/generated/current-postgresql/client/client.ts'

const ids = new Snowflake('twitter', { datacenter: 1, worker: 7 })

declare const base: PrismaClient
const prisma = base.$extends(snowflakes(ids))
const created = await prisma.user.create({ data: { name: 'a', posts: { create: { title: 'b' } } }, include: { posts: true } })
const id: bigint = created.posts[0]!.id
await prisma.$transaction(async tx => tx.user.createMany({ data: [{ name: 'a' }, { id, name: 'b' }] }))
const chained = prisma.$extends({ model: { user: { hello: () => 'hello' } } })
chained.user.hello().length
base.$extends(snowflakes(Snowflake.open('standard'), { models: { User: 'id' } }))
// @ts-expect-error models need their fields
snowflakes(ids, { models: ['User'] })
// @ts-expect-error there is no such model
prisma.nobody

@Entity()
class User {
  @PrimarySnowflakeColumn({ comment: 'a key' }) id!: string
  @SnowflakeColumn({ nullable: true }) invitedBy!: string | null
}
// @ts-expect-error the type is fixed
PrimarySnowflakeColumn({ type: 'int' })
const Note = new EntitySchema<{ id: string; about: string }>({ name: 'Note', columns: { id: { ...snowflakeColumn, primary: true }, about: snowflakeColumn } })
new DataSource({ type: 'better-sqlite3', database: 'app.db', entities: [User, Note], subscribers: [snowflakeSubscriber(() => ids)], prepareDatabase: exactIntegers })

const schema = new Schema({ _id: String, name: String, author: { ...snowflakeType, ref: 'User' } })
schema.plugin(snowflakeId(ids))
type Book = InferSchemaType<typeof schema>
const book: Partial<Book> = { author: '1' }
const Model = mongoose.model('Book', new Schema({ _id: String, name: String }).plugin(snowflakeId(ids)))
const document = await Model.findById('1')
document?._id?.padStart(19)

const database: Database.Database = exactIntegers(new Database(':memory:'))
const parsed: unknown = parseJson(JSON.stringify({ id }, jsonReplacer))
// @ts-expect-error not a generator
snowflakeSubscriber({})
void [book, database, parsed]
