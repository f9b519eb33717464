import nestjs from './nestjs.js'

export const { FrazilModule, InjectIds, ParseSnowflakePipe, getIdsToken } = nestjs
