// Prisma's client, which takes the IDs of new rows from the generator of its process.
import { Inject, Module, type OnApplicationShutdown } from '@nestjs/common'
import { PrismaPg } from '@prisma/adapter-pg'
import { Snowflake } from 'frazil'
import { FrazilModule } from 'frazil/nestjs'
import { snowflakes } from 'frazil/prisma'
import { PrismaClient } from './generated/client.js'

function connect(ids: Snowflake) {
  const adapter = new PrismaPg({ connectionString: process.env.DATABASE_URL })
  return new PrismaClient({ adapter }).$extends(snowflakes(ids))
}

export type Database = ReturnType<typeof connect>
export const DATABASE = Symbol('database')

// The spec line in FRAZIL defines the generator.
@Module({
  imports: [FrazilModule.forRoot()],
  providers: [{ provide: DATABASE, inject: [Snowflake], useFactory: connect }],
  exports: [DATABASE],
})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(@Inject(DATABASE) private readonly database: Database) {}

  async onApplicationShutdown() {
    await this.database.$disconnect()
  }
}
