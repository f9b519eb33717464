// The first process starts the workers, and replaces those that end. Each worker runs the application.
import cluster from 'node:cluster'
import { StandardSchemaValidationPipe } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger'
import { jsonReplacer } from 'frazil/json'
import { Board } from './board.js'

function supervise() {
  let ending = false
  for (let count = Number(process.env.WORKERS ?? 4); count > 0; count--) {
    cluster.fork()
  }
  cluster.on('exit', worker => {
    if (!ending && !worker.exitedAfterDisconnect) {
      cluster.fork()
    }
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      ending = true
      Object.values(cluster.workers ?? {}).forEach(worker => worker?.process.kill(signal))
    })
  }
}

async function serve() {
  const app = await NestFactory.create<NestExpressApplication>(Board, { logger: ['error', 'warn'] })
  app.useGlobalPipes(new StandardSchemaValidationPipe())
  // BigInts become strings in every answer.
  app.set('json replacer', jsonReplacer)
  const described = SwaggerModule.createDocument(app, new DocumentBuilder().setTitle('Message board').build())
  SwaggerModule.setup('docs', app, described, { jsonDocumentUrl: 'openapi.json' })
  app.enableShutdownHooks()
  await app.listen(process.env.PORT ?? 8000, '127.0.0.1')
}

if (cluster.isPrimary) {
  supervise()
} else {
  await serve()
}
