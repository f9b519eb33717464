import type {
  ArgumentMetadata, DynamicModule, FactoryProvider, InjectionToken, ModuleMetadata, PipeTransform,
} from '@nestjs/common' with { 'resolution-mode': 'import' }
import type { SnowflakeIdOptions } from './schema.js'
import type { IdsOptions } from './adapters/open.js'

/** The options of {@link FrazilModule.forRoot}. */
export interface FrazilModuleOptions extends IdsOptions {
  /** The name of a second generator: {@link InjectIds} injects it by this name. */
  name?: string | undefined
}

/** The options of {@link FrazilModule.forRootAsync}. */
export interface FrazilModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** The name of a second generator: {@link InjectIds} injects it by this name. */
  name?: string | undefined
  /** The arguments of `useFactory`. */
  inject?: FactoryProvider['inject']
  /** Returns the spec line, or the options of the generator. */
  useFactory: (...injected: any[]) => string | IdsOptions | undefined | Promise<string | IdsOptions | undefined>
}

/**
 * Opens a generator before the application starts, for all its modules to inject. Closes it in `onApplicationShutdown`, after the last
 * request: at `app.close()`, and on SIGTERM with `app.enableShutdownHooks()`. Needs NestJS 10 or later.
 *
 * If the generator cannot be opened, the application does not start.
 *
 * @example
 * @Module({ imports: [FrazilModule.forRoot('standard store=local')] })
 * class AppModule {}
 *
 * @Injectable()
 * class Orders {
 *   constructor(private readonly ids: Snowflake) {}
 * }
 */
export class FrazilModule {
  /**
   * Configures the generator of the options, or of the environment variable FRAZIL. Nest opens it when it starts; the call does not wait.
   *
   * @throws {FrazilError} `UNKNOWN_KEY` and `WRONG_TYPE` for the options. When Nest starts: `CONFLICT` for a second one of the same name,
   * and the errors of opening.
   */
  static forRoot(options?: string | FrazilModuleOptions): DynamicModule
  /**
   * Configures like `forRoot`, with the options that a factory returns.
   *
   * @example
   * FrazilModule.forRootAsync({ inject: [ConfigService], useFactory: (config: ConfigService) => config.getOrThrow<string>('FRAZIL') })
   */
  static forRootAsync(options: FrazilModuleAsyncOptions): DynamicModule
}

/** Injects the generator of a name; without one, that of `forRoot` without a name, which the class `Snowflake` also injects. */
export function InjectIds(name?: string): PropertyDecorator & ParameterDecorator

/** The token of a generator, for `inject` of a factory and for `overrideProvider` of a test. */
export function getIdsToken(name?: string): InjectionToken

/**
 * A pipe that accepts IDs, and answers other values with status 400 and the reason.
 *
 * @example
 * @Get(':id')
 * find(@Param('id', ParseSnowflakePipe) id: string) {}
 *
 * @Get()
 * list(@Query('after', new ParseSnowflakePipe({ optional: true, as: 'bigint' })) after?: bigint) {}
 */
export class ParseSnowflakePipe implements PipeTransform<unknown, any> {
  /** @throws {FrazilError} As `snowflakeId` of `frazil/schema`. */
  constructor(options?: SnowflakeIdOptions & { /** Accepts `undefined`. */ optional?: boolean | undefined })
  transform(value: unknown, metadata?: ArgumentMetadata): any
}
