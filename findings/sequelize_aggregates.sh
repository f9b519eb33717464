#!/usr/bin/env bash
# Sequelize: findAll() returns a BIGINT as exact text, but max() of the same column returns another number.
#
# For max(), min() and sum() of a BIGINT, sequelize 6.37.8 passes the text of PostgreSQL's driver to parseInt(). Everywhere else
# it keeps the text. "The highest ID so far" is then not the ID of any row.
# Remedy: read the row, `findOne({ order: [['id', 'DESC']] })`.
. "$(dirname "$0")/begin.sh"
npm_packages sequelize@6.37.8 pg@8.23.1 @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17
cat > try.mjs <<'JS'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { DataTypes, Sequelize } from 'sequelize'

const server = new PGLiteSocketServer({ db: await PGlite.create(), port: 0, host: '127.0.0.1' })
await server.start()
const [, port] = server.getServerConn().split(':')
const database = new Sequelize(`postgres://postgres@127.0.0.1:${port}/postgres`, { logging: false, pool: { max: 1 } })
const Row = database.define('row', { id: { type: DataTypes.BIGINT, primaryKey: true } })
await database.sync()
await Row.create({ id: '1541815603606036481' })
console.log('findAll:', (await Row.findAll({ raw: true }))[0].id)
console.log('max:', await Row.max('id'))
process.exit()
JS
timeout 60 node try.mjs > seen
expect seen <<'SEEN'
findAll: 1541815603606036481
max: 1541815603606036500
SEEN
