// A message board: IDs are BigInts in Prisma and PostgreSQL, and strings wherever JavaScript reads JSON.
import { readFileSync } from 'node:fs'
import {
  BadRequestException, Body, Controller, Get, Header, Inject, Module, NotFoundException, Param, Post, Query,
} from '@nestjs/common'
import { ApiExcludeEndpoint, ApiResponse } from '@nestjs/swagger'
import { Snowflake } from 'frazil'
import { snowflakeId } from 'frazil/zod'
import * as z from 'zod'
import { DATABASE, DatabaseModule, type Database } from './database.js'

// PostgreSQL accepts no NUL characters, and no half of a surrogate pair.
const text = (most: number) =>
  z.string().trim().min(1).max(most).refine(given => given.isWellFormed() && !given.includes('\0'), 'must be Unicode without NUL')

const NewTopic = z.object({ title: text(100) })
const Topic = z.object({ id: snowflakeId(), title: z.string() })
const NewMessage = z.object({ topic: snowflakeId({ as: 'bigint' }), author: text(100), text: text(2000) })
const Message = z.object({
  id: snowflakeId(), topic: snowflakeId(), author: z.string(), text: z.string(), created: z.iso.datetime(), node: z.int(),
})
const Wanted = z.object({
  topic: snowflakeId({ as: 'bigint' }).optional(),
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  before: snowflakeId({ as: 'bigint' }).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(50),
})

@Controller('api/topics')
class Topics {
  constructor(@Inject(DATABASE) private readonly database: Database) {}

  @Post()
  @ApiResponse({ status: 201, standardSchema: Topic })
  create(@Body({ schema: NewTopic }) { title }: z.infer<typeof NewTopic>) {
    return this.database.topic.create({ data: { title } })
  }

  @Get()
  @ApiResponse({ status: 200, standardSchema: z.array(Topic) })
  list() {
    return this.database.topic.findMany({ orderBy: { title: 'asc' }, take: 1000 })
  }
}

@Controller('api/messages')
class Messages {
  constructor(@Inject(DATABASE) private readonly database: Database, private readonly ids: Snowflake) {}

  @Post()
  @ApiResponse({ status: 201, standardSchema: Message })
  async create(@Body({ schema: NewMessage }) { topic, author, text }: z.infer<typeof NewMessage>) {
    if (!await this.database.topic.findUnique({ where: { id: topic } })) {
      throw new BadRequestException(`unknown topic ${topic}`)
    }
    return this.show(await this.database.message.create({ data: { topicId: topic, author, text } }))
  }

  /** The newest messages first, from `since` on and before `until`; `before` is the last ID of the page before. */
  @Get()
  @ApiResponse({ status: 200, standardSchema: z.array(Message) })
  async list(@Query({ schema: Wanted }) { topic, since, until, before, limit }: z.infer<typeof Wanted>) {
    const [from, end] = [since, until].map(time => (time === undefined ? undefined : this.firstId(time)))
    // An undefined bound does not restrict the list.
    const rows = await this.database.message.findMany({
      where: { topicId: topic, AND: [{ id: { gte: from, lt: end } }, { id: { lt: before } }] },
      orderBy: { id: 'desc' },
      take: limit,
    })
    return rows.map(row => this.show(row))
  }

  @Get(':id')
  @ApiResponse({ status: 200, standardSchema: Message })
  async find(@Param('id', { schema: snowflakeId({ as: 'bigint' }) }) id: bigint) {
    const row = await this.database.message.findUnique({ where: { id } })
    if (!row) {
      throw new NotFoundException(`unknown message ${id}`)
    }
    return this.show(row)
  }

  /** A message in the API; the time and the node number are in the ID. */
  private show({ id, topicId, author, text }: { id: bigint; topicId: bigint; author: string; text: string }) {
    const { time, fields } = this.ids.layout.decode(id)
    return { id, topic: topicId, author, text, created: time, node: fields.node }
  }

  /** The smallest ID of a millisecond: smaller IDs were made before it. */
  private firstId(time: string) {
    try {
      return BigInt(this.ids.layout.minId(new Date(time)))
    } catch (error) {
      throw new BadRequestException((error as Error).message)
    }
  }
}

const page = readFileSync('index.html', 'utf8')

@Controller()
class Page {
  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  @ApiExcludeEndpoint()
  show() {
    return page
  }
}

@Module({ imports: [DatabaseModule], controllers: [Topics, Messages, Page] })
export class Board {}
