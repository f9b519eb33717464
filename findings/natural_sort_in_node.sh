#!/usr/bin/env bash
# Natural order in Node: four comparators, and TanStack Table without being asked, find neighbouring IDs equal.
#
# An ID that is a text, as it should be in JavaScript, is a run of digits, which these packages compare as a number: natural-compare 1.4.0,
# natural-orderby 5.0.0, javascript-natural-sort 0.7.1 and natsort 2.0.3 find no difference between two IDs of one moment. TanStack Table
# 8.21.3 chooses such an order by itself for texts with digits, so that a table of more than ten rows that is sorted by its ID keeps the
# order in which the rows came; 9.3.1 has the same function. string-natural-compare 3.0.1 and Intl.Collator with `numeric` compare the digits.
# Remedy: IDs of one length sort as texts (`a < b`), and in TanStack Table by the function `text`.
. "$(dirname "$0")/begin.sh"
npm_packages natural-compare@1.4.0 natural-orderby@5.0.0 javascript-natural-sort@0.7.1 natsort@2.0.3 string-natural-compare@3.0.1 \
    @tanstack/table-core@8.21.3 nine@npm:@tanstack/table-core@9.3.1
cat > sort.mjs <<'JS'
import * as eight from '@tanstack/table-core'
import * as nine from 'nine'
import natural from 'javascript-natural-sort'
import compare from 'natural-compare'
import { compare as order } from 'natural-orderby'
import natsort from 'natsort'
import byDigits from 'string-natural-compare'

const [first, last] = ['1765646837124341761', '1765646837124341762']
const comparators = {
  'natural-compare': compare,
  'natural-orderby': order(),
  'javascript-natural-sort': natural,
  natsort: (natsort.default ?? natsort)(),
  'string-natural-compare': byDigits,
  'Intl.Collator': new Intl.Collator('en', { numeric: true }).compare,
}
for (const [name, compares] of Object.entries(comparators)) console.log(`${name}: ${Math.sign(compares(last, first))}`)

const table = eight.createTable({
  // It looks at texts from the eleventh on to choose an order.
  data: Array.from({ length: 13 }, (_, n) => ({ id: String(1765646837124341773n - BigInt(n)) })),
  columns: [{ accessorKey: 'id' }, { accessorKey: 'id', id: 'as text', sortingFn: 'text' }],
  getCoreRowModel: eight.getCoreRowModel(),
  getSortedRowModel: eight.getSortedRowModel(),
  state: { columnPinning: {}, sorting: [{ id: 'id', desc: false }] },
  onStateChange() {},
  renderFallbackValue: null,
})
const sorted = () => table.getSortedRowModel().rows.map((row) => row.original.id.slice(-2)).join(' ')
console.log(`TanStack Table 8: ${sorted()}`)
table.setOptions((options) => ({ ...options, state: { ...options.state, sorting: [{ id: 'as text', desc: false }] } }))
console.log(`TanStack Table 8, text: ${sorted()}`)
const row = (id) => ({ getValue: () => id })
for (const name of ['alphanumeric', 'text']) console.log(`TanStack Table 9, ${name}: ${nine.sortFns[name](row(last), row(first), 'id')}`)
JS
node sort.mjs > seen
expect seen <<'SEEN'
natural-compare: 0
natural-orderby: 0
javascript-natural-sort: 0
natsort: 0
string-natural-compare: 1
Intl.Collator: 1
TanStack Table 8: 73 72 71 70 69 68 67 66 65 64 63 62 61
TanStack Table 8, text: 61 62 63 64 65 66 67 68 69 70 71 72 73
TanStack Table 9, alphanumeric: 0
TanStack Table 9, text: 1
SEEN
