// frazil/lite has the addon's types where it has its names.
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

// One for the other, both ways.
export const layouts: [frazil.Layout, Layout] = [new Layout('twitter'), new frazil.Layout('twitter')]
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
// @ts-expect-error: of another preset
new Layout('twitter').decode('1').machine

// @ts-expect-error: frazil makes them
new FrazilError('ID_INVALID', 'no')
// @ts-expect-error: an ID's order needs both
compareIds('1')
// @ts-expect-error: the format is one of four
formatId('1', 'base64')
