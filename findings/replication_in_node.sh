#!/usr/bin/env bash
# Replication of PostgreSQL to Node: a change has the exact ID by one plugin of a package, and another ID by the next plugin.
#
# pg-logical-replication 2.5.0 reads the changes of a table by several output plugins of the server. By pgoutput, a bigint is a text with
# all digits. By wal2json (Debian's, for PostgreSQL 15), whose JSON has all digits too, it is a rounded number. So an index or a
# cache that follows the table gets entries of IDs that no row has, and a deletion removes nothing, or another row's entry.
# Remedy: PgoutputPlugin.
. "$(dirname "$0")/begin.sh"
bin=/usr/lib/postgresql/15/bin
[ -x $bin/postgres ] && [ -e /usr/lib/postgresql/15/lib/wal2json.so ] || { echo "postgresql-15 and postgresql-15-wal2json are needed" && exit 1; }
npm_packages pg@8.23.1 pg-logical-replication@2.5.0
cat > try.mjs <<'JS'
import pg from 'pg'
import { LogicalReplicationService, PgoutputPlugin, Wal2JsonPlugin } from 'pg-logical-replication'

const config = { host: process.cwd(), user: 'postgres', database: 'postgres' }
const client = new pg.Client(config)
await client.connect()
await client.query('CREATE TABLE orders (id bigint PRIMARY KEY)')
await client.query('CREATE PUBLICATION shop FOR ALL TABLES')
const plugins = {
  pgoutput: [new PgoutputPlugin({ protoVersion: 1, publicationNames: ['shop'] }), ({ tag, new: row }) => tag === 'insert' && row.id],
  wal2json: [new Wal2JsonPlugin(), ({ change }) => change[0]?.columnvalues?.[0]],
}
for (const [name, [plugin, idOf]] of Object.entries(plugins)) {
  await client.query('SELECT pg_create_logical_replication_slot($1, $1)', [name])
  const service = new LogicalReplicationService(config)
  const id = new Promise((resolve, reject) => {
    service.on('data', (_, change) => idOf(change) && resolve(idOf(change)))
    service.on('error', reject)
  })
  service.subscribe(plugin, name).catch((error) => console.log(error.message))
  await client.query('INSERT INTO orders VALUES (1541815603606036481)')
  console.log(`${name}: ${typeof (await id)} ${await id}`)
  await client.query('DELETE FROM orders')
  await service.stop()
}
await client.end()
JS
# PostgreSQL refuses to run as root.
as=()
[ "$(id -u)" -ne 0 ] || { as=(runuser -u postgres --) && chown postgres "$work"; }
"${as[@]}" $bin/initdb --pgdata data --auth trust --username postgres > /dev/null
options="-c wal_level=logical -c listen_addresses= -c unix_socket_directories=$work"
"${as[@]}" $bin/pg_ctl --pgdata data --wait --log log -o "$options" start > /dev/null
trap '"${as[@]}" $bin/pg_ctl --pgdata data --mode immediate stop > /dev/null; rm -rf "$work"' EXIT
node try.mjs > seen
expect seen <<'SEEN'
pgoutput: string 1541815603606036481
wal2json: number 1541815603606036500
SEEN
