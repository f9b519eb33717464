'use strict'
// A NestJS module that opens generators before the application starts and closes them when it shuts down; a pipe for IDs.

const { FrazilError, Snowflake } = require('./index.js')
const { snowflakeId } = require('./lite/cjs/schema.js')
const { framework } = require('./adapters/framework.js')
const { openIds, readOptions } = require('./adapters/open.js')

const common = framework('frazil/nestjs', '@nestjs/common', () => require('@nestjs/common'), '10 or later')
const { ModulesContainer } = framework('frazil/nestjs', '@nestjs/core', () => require('@nestjs/core'), '10 or later')
const { BadRequestException, Inject, Injectable, Module } = common

function getIdsToken(name) {
  return name === undefined ? Snowflake : `frazil:${name}`
}

function InjectIds(name) {
  return Inject(getIdsToken(name))
}

// Nest calls its hook after the last request.
class Closing {
  constructor(ids) {
    this.ids = ids
  }

  async onApplicationShutdown() {
    // A test may have replaced the generator.
    if (typeof Object(this.ids).closeAsync === 'function') {
      await this.ids.closeAsync()
    }
  }
}

let count = 0

class FrazilModule {
  static forRoot(given) {
    const { name, ...options } = readOptions(given, ['name'])
    return FrazilModule.forRootAsync({ name, useFactory: () => options })
  }

  static forRootAsync(given) {
    const { name, imports, inject = [], useFactory } = Object(given)
    if (typeof useFactory !== 'function') {
      throw new FrazilError('WRONG_TYPE', 'useFactory must be a function that returns a spec line or options: pass the values themselves to forRoot')
    }
    const token = getIdsToken(name)
    const open = async (modules, ...injected) => {
      refuseTwo(modules, token)
      return openIds(readOptions(await useFactory(...injected), []))
    }
    return {
      module: FrazilModule,
      global: true,
      imports,
      providers: [
        { provide: token, inject: [ModulesContainer, ...inject], useFactory: open },
        // The number makes definitions differ: before version 11, Nest merges modules with equal definitions.
        { provide: `frazil:closing:${count++}`, inject: [token], useFactory: ids => new Closing(ids) },
      ],
      exports: [token],
    }
  }
}
Module({})(FrazilModule)

// Nest would inject the first one everywhere.
function refuseTwo(modules, token) {
  const same = [...modules.values()].filter(({ metatype, providers }) => metatype === FrazilModule && providers.has(token))
  if (same.length > 1) {
    const which = token === Snowflake ? 'without a name' : `of the name ${JSON.stringify(token.slice('frazil:'.length))}`
    throw new FrazilError('CONFLICT', `FrazilModule is imported ${same.length} times ${which}: give each generator its own name`)
  }
}

class ParseSnowflakePipe {
  constructor({ optional = false, ...options } = {}) {
    this.optional = optional
    this.schema = snowflakeId(options)['~standard']
  }

  transform(value, metadata) {
    if (this.optional && value === undefined) {
      return value
    }
    const { value: id, issues } = this.schema.validate(value)
    if (issues) {
      const { data } = Object(metadata)
      throw new BadRequestException(data === undefined ? issues[0].message : `${data}: ${issues[0].message}`)
    }
    return id
  }
}
Injectable()(ParseSnowflakePipe)

module.exports = { FrazilModule, InjectIds, ParseSnowflakePipe, getIdsToken }
