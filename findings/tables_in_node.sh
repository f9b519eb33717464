#!/usr/bin/env bash
# Tables in Node: nodejs-polars rounds the values of a signed column, and only of it; Arquero refuses the same column of Arrow, and rounds CSV.
#
# nodejs-polars 0.26.1 makes a bigint from a UInt64 and a rounded number from an Int64, which is the type of an ID from a CSV file or a
# database, in rows, records, arrays and `max`. Its filters and writers are exact. Arquero 8.0.1 refuses an Arrow column with an ID, unless
# `useBigInt` is set, and takes the digits of a CSV file for a rounded number.
# Remedy: cast the column to text, or to UInt64, before values are read; `useBigInt: true`; `parse: { id: String }` for CSV.
. "$(dirname "$0")/begin.sh"
npm_packages nodejs-polars@0.26.1 nodejs-polars-linux-x64-gnu@0.26.1 arquero@8.0.1 apache-arrow@21.1.0
cat > tables.mjs <<'JS'
import { tableFromArrays, tableToIPC } from 'apache-arrow'
import * as arquero from 'arquero'
import polars from 'nodejs-polars'
import { show } from './show.mjs'

const id = 1765646837124341761n
const csv = `id\n${id}\n`
const signed = polars.readCSV(csv)
const arrow = tableToIPC(tableFromArrays({ id: BigInt64Array.of(id) }))
show({
  'nodejs-polars, Int64, record': () => signed.toRecords()[0].id,
  'nodejs-polars, Int64, row': () => signed.rows()[0][0],
  'nodejs-polars, Int64, max': () => signed.getColumn('id').max(),
  'nodejs-polars, Int64, CSV': () => signed.writeCSV().toString().split('\n')[1],
  'nodejs-polars, UInt64, record': () => signed.select(polars.col('id').cast(polars.UInt64)).toRecords()[0].id,
  'nodejs-polars, text, record': () => signed.select(polars.col('id').cast(polars.String)).toRecords()[0].id,
  'Arquero, Arrow': () => arquero.fromArrow(arrow).get('id', 0),
  'Arquero, Arrow, useBigInt': () => arquero.fromArrow(arrow, { useBigInt: true }).get('id', 0),
  'Arquero, CSV': () => arquero.fromCSV(csv).get('id', 0),
  'Arquero, CSV, String': () => arquero.fromCSV(csv, { parse: { id: String } }).get('id', 0),
})
JS
node tables.mjs > seen
expect seen <<'SEEN'
nodejs-polars, Int64, record: number 1765646837124341800
nodejs-polars, Int64, row: number 1765646837124341800
nodejs-polars, Int64, max: number 1765646837124341800
nodejs-polars, Int64, CSV: string 1765646837124341761
nodejs-polars, UInt64, record: bigint 1765646837124341761
nodejs-polars, text, record: string 1765646837124341761
Arquero, Arrow: an error
Arquero, Arrow, useBigInt: bigint 1765646837124341761
Arquero, CSV: number 1765646837124341800
Arquero, CSV, String: string 1765646837124341761
SEEN
