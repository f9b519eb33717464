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
  /** Gives the spec line, or what is opened. */
  useFactory: (...injected: any[]) => string | IdsOptions | undefined | Promise<string | IdsOptions | undefined>
}

/**
 * Opens a generator before the application starts, for all its modules to inject, and closes it in `onApplicationShutdown`, after the last
 * request: that is with `app.close()`, and on SIGTERM where `app.enableShutdownHooks()` says so. Needs NestJS 10 or later.
 *
 * Where it does not open, the application does not start.
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
   * Opens what is given; without an argument what the environment variable FRAZIL says. It does not wait: Nest does, when it starts.
   *
   * @throws {FrazilError} `UNKNOWN_KEY` and `WRONG_TYPE` for what is given. When Nest starts: `CONFLICT` for a second one of the same name, and
   * whatever opening throws.
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

/** Injects the generator of a name; without one that of `forRoot` without a name, which may also be injected by its class, `Snowflake`. */
export function InjectIds(name?: string): PropertyDecorator & ParameterDecorator

/** The token of a generator, for `inject` of a factory and for `overrideProvider` of a test. */
export function getIdsToken(name?: string): InjectionToken

/**
 * A pipe that lets IDs through and answers anything else with status 400 and the reason.
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
  constructor(options?: SnowflakeIdOptions & { /** Lets `undefined` through. */ optional?: boolean | undefined })
  transform(value: unknown, metadata?: ArgumentMetadata): any
}
