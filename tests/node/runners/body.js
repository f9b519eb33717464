// The tests in each of a runner's 25 files. The runner has loaded `frazil` in another realm; `reset` loads it again.
const SLOW = 'layout="time:38@100ms node:10 sequence:4 epoch:2025-01-01" start=zero exhausted=wait detached=true'
const ids = new frazil.Snowflake('twitter', { datacenter: 1, worker: 7, maxWaitMs: 10000 })

test('values are of this realm', () => {
  const parts = ids.layout.decode(ids.next())
  expect(parts.time).toBeInstanceOf(Date)
  expect(parts.fields).toStrictEqual({ datacenter: 1, worker: 7 })
  expect(ids.fields).toStrictEqual({ datacenter: 1, worker: 7 })
  expect(ids.batch(3)).toBeInstanceOf(Array)
  expect(ids.layout.fieldBits).toStrictEqual({ datacenter: 5, worker: 5 })
})

test('layouts are compared', () => {
  expect(new frazil.Layout('twitter')).toEqual(ids.layout)
  expect(new frazil.Layout('discord')).not.toEqual(ids.layout)
})

test('errors are of this copy, and of every other', async () => {
  expect(() => ids.batch(-1)).toThrow(frazil.FrazilError)
  expect(() => ids.next(7)).toThrow(Error)
  await expect(ids.batchAsync(-1)).rejects.toBeInstanceOf(frazil.FrazilError)
  const other = await reset()
  const theirs = new other.Snowflake('twitter', { datacenter: 1, worker: 7 })
  for (const each of [ids, theirs]) {
    expect(() => each.batch(-1)).toThrow(frazil.FrazilError)
    expect(() => each.batch(-1)).toThrow(other.FrazilError)
  }
  expect(BigInt(theirs.next()) < BigInt(ids.next())).toBe(true)
})

test('what waits ends', async () => {
  const slow = await frazil.Snowflake.open(SLOW, { node: 1 })
  const waiting = slow.batchAsync(20)
  const other = await reset()
  const theirs = await other.Snowflake.open(SLOW, { node: 2 })
  expect((await theirs.batchAsync(20)).length).toBe(20)
  expect((await waiting).length).toBe(20)
})

test('methods are replaced', () => {
  const call = spyOn(frazil.Snowflake.prototype, 'next').mockReturnValue('7')
  expect(ids.next()).toBe('7')
  call.mockRestore()
  expect(ids.next()).not.toBe('7')
})

test('a store whose number is not released', async () => {
  const leased = await frazil.Snowflake.open('standard', { store: 'memory' })
  expect(leased.lease.bound).toBeInstanceOf(Date)
  await leased.nextAsync()
})
