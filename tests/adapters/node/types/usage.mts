// The adapters' types, with those of the frameworks.
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { Controller, Get, Injectable, Module, Param, Query } from '@nestjs/common'
import { Ajv } from 'ajv'
import { type } from 'arktype'
import Fastify from 'fastify'
import { Layout, Segment, Snowflake } from 'frazil'
import { frazilPlugin, type FrazilPluginOptions } from 'frazil/fastify'
import { GraphQLSnowflake } from 'frazil/graphql'
import { Layout as LiteLayout } from 'frazil/lite'
import { FrazilModule, InjectIds, ParseSnowflakePipe, getIdsToken, type FrazilModuleOptions } from 'frazil/nestjs'
import { idJsonSchema, snowflakeId as schema, type SnowflakeIdOptions, type SnowflakeIdSchema } from 'frazil/schema'
import { snowflakeId } from 'frazil/zod'
import { GraphQLNonNull, GraphQLObjectType, GraphQLSchema } from 'graphql'
import * as z from 'zod'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

// The Standard Schema.
export const standard: [StandardSchemaV1<string, string>, StandardSchemaV1<string, bigint>, StandardJSONSchemaV1<string, string>] =
  [schema(), schema({ as: 'bigint' }), schema({ as: 'string' })]
export const inferred: [
  Same<StandardSchemaV1.InferInput<SnowflakeIdSchema<bigint>>, string>,
  Same<StandardSchemaV1.InferOutput<SnowflakeIdSchema<bigint>>, bigint>,
  Same<StandardSchemaV1.InferOutput<SnowflakeIdSchema>, string>,
] = [true, true, true]
export const layouts: SnowflakeIdOptions[] = [{ layout: new Layout('twitter') }, { layout: new LiteLayout('twitter'), maxAheadMs: 5 }, { layout: 'leaf' }]
// @ts-expect-error: no such output
schema({ as: 'number' })
// @ts-expect-error: no such option
schema({ store: 'local' })
const result = schema({ as: 'bigint' })['~standard'].validate('5')
export const outcome: string | bigint = result.issues ? result.issues.map(issue => issue.message).join() : result.value

// ArkType and Ajv.
const Order = type({ id: schema(), customer: schema({ as: 'bigint' }) })
export const order: { id: string; customer: bigint } = Order.assert({ id: '5', customer: '6' })
export const valid: boolean = new Ajv().validate({ type: 'object', properties: { id: { ...idJsonSchema, description: 'the order' } } }, {})

// zod.
const Item = z.object({ id: snowflakeId(), owner: snowflakeId({ as: 'bigint' }).optional(), parent: snowflakeId().nullable() })
export const item: Same<z.infer<typeof Item>, { id: string; owner?: bigint | undefined; parent: string | null }> = true
export const sent: Same<z.input<typeof Item>['owner'], string | undefined> = true
export const text: z.ZodString = snowflakeId({ layout: 'twitter' })

// GraphQL.
const required = new GraphQLNonNull(GraphQLSnowflake)
export const graph = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { id: { type: required, args: { id: { type: GraphQLSnowflake } } } } }) })

// Fastify.
const app = Fastify()
await app.register(frazilPlugin, { spec: 'standard', options: { node: 7, maxWaitMs: 5 } })
await app.register(frazilPlugin)
await app.register(frazilPlugin, { name: 'orders', open: () => Segment.open('orders', { store: 'local' }) })
const given: FrazilPluginOptions = { spec: 'twitter datacenter=1 worker=2' }
await app.register(frazilPlugin, given)
// @ts-expect-error: a store belongs into spec or options
app.register(frazilPlugin, { store: 'local' })
app.get<{ Params: { id: string } }>('/:id', { schema: { params: { type: 'object', properties: { id: idJsonSchema } } } }, async request => {
  const ids: Snowflake = app.ids
  return [ids.next(), request.server.ids.layout.decode(request.params.id).time]
})

// NestJS.
@Injectable()
export class Orders {
  constructor(readonly ids: Snowflake, @InjectIds('photos') readonly photos: Snowflake, @InjectIds('orders') readonly orders: Segment) {}
}

@Controller('orders')
export class OrdersController {
  @InjectIds() private readonly ids!: Snowflake

  @Get(':id')
  find(@Param('id', ParseSnowflakePipe) id: string, @Query('after', new ParseSnowflakePipe({ as: 'bigint', optional: true })) after?: bigint): string[] {
    return [id, String(after), this.ids.next()]
  }

  @Get('again/:id')
  again(@Param('id', { schema: schema() }) id: string): string {
    return id
  }
}

const photos: FrazilModuleOptions = { name: 'photos', spec: 'standard node=2' }
@Module({
  imports: [
    FrazilModule.forRoot(),
    FrazilModule.forRoot('standard store=local'),
    FrazilModule.forRoot(photos),
    FrazilModule.forRootAsync({ name: 'orders', inject: ['LINE'], useFactory: async (line: string) => ({ open: () => Segment.open(line) }) }),
    FrazilModule.forRootAsync({ imports: [], useFactory: () => 'standard node=7' }),
  ],
  providers: [{ provide: 'first', inject: [getIdsToken('photos'), getIdsToken()], useFactory: (ids: Snowflake) => ids.next() }],
})
export class AppModule {}
// @ts-expect-error: a store belongs into spec or options
FrazilModule.forRoot({ store: 'local' })
// @ts-expect-error: forRoot takes a spec line
FrazilModule.forRootAsync('standard')
// @ts-expect-error: no such option
new ParseSnowflakePipe({ errorHttpStatusCode: 404 })
