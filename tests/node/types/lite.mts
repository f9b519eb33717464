// The names that frazil/lite shares with the addon have the same types.
import * as frazil from 'frazil'
import { FrazilError, Layout, compareIds, formatId, isId, parseId } from 'frazil/lite'
import type { Composition, ErrorCode, IdLike, Instant, Parts, PresetFields, TextFormat } from 'frazil/lite'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
export const same: [
  Same<ErrorCode, frazil.ErrorCode>,
  Same<IdLike, frazil.IdLike>,
  Same<Instant, frazil.Instant>,
  Same<TextFormat, frazil.TextFormat>,
  Same<typeof compareIds, typeof frazil.compareIds>,
  Same<typeof formatId, typeof frazil.formatId>,
  Same<typeof parseId, typeof frazil.parseId>,
  Same<PresetFields, frazil.PresetFields>,
  Same<Parts, frazil.Parts>,
  Same<Parts<'twitter'>, frazil.Parts<'twitter'>>,
] = [true, true, true, true, true, true, true, true, true, true]

// The two layouts are interchangeable, except that only the addon's has columns.
export const layouts: [Omit<frazil.Layout, 'decodeMany' | 'composeMany'>, Layout] = [new Layout('twitter'), new frazil.Layout('twitter')]
export const parts = (own: Parts, other: frazil.Parts): [frazil.Parts, Parts] => [own, other]
export const compositions = (own: Composition, other: frazil.Composition): [frazil.Composition, Composition] => [own, other]

const given: unknown = '1541815603606036480'
if (isId(given, new Layout('twitter'), new Date())) {
  const id: IdLike = given
  use(id)
}
function use(id: IdLike): number {
  return [id, 5n, '7'].sort(compareIds).length
}

export const worker: number = new Layout('twitter').decode('1').worker
// @ts-expect-error: another preset's part
new Layout('twitter').decode('1').machine

// @ts-expect-error: only frazil makes errors
new FrazilError('ID_INVALID', 'no')
// @ts-expect-error: a comparison needs two IDs
compareIds('1')
// @ts-expect-error: the format is one of four
formatId('1', 'base64')
