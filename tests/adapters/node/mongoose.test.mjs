import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FrazilError, Snowflake, formatId, parseId } from 'frazil'
import { snowflakeId, snowflakeType } from 'frazil/mongoose'
import { startMongodb } from './mongodb.mjs'
import { throughEveryValidator } from './validators.mjs'
import { alsoWithTheOldest } from './versions.mjs'

const { default: mongoose } = await import('mongoose')
const { Schema } = mongoose

alsoWithTheOldest(import.meta.url)

const ids = new Snowflake('standard', { node: 7, detached: true })
const slow = await Snowflake.open('exhausted=wait:30s', { layout: 'time:31@1s node:31 sequence:1 epoch:2025-01-01', node: 1, detached: true })

function refused(code, ...says) {
  return error => {
    assert.ok(error instanceof FrazilError, error.stack)
    assert.equal(error.code, code)
    says.forEach(part => assert.ok(error.message.includes(part), error.message))
    return true
  }
}

const isStored = id => typeof id === 'string' && /^\d{19}$/.test(id) && ids.layout.decode(id).node === 7
const isId = id => parseId(id) === id && ids.layout.decode(id).node === 7
const storedOf = id => formatId(id, 'decimal')

describe('with a server', () => {
  let server, connection, Book, Slow
  before(async () => {
    server = await startMongodb()
    connection = await mongoose.createConnection(server.url).asPromise()
    const chapter = new Schema({ title: String }).plugin(snowflakeId(ids))
    const plain = new Schema({ n: Number })
    const book = new Schema({
      name: String, pages: { type: Number, default: 1 }, author: { ...snowflakeType, ref: 'Book' }, chapters: [chapter], plain: [plain], first: chapter,
    })
    Book = connection.model('Book', book.plugin(snowflakeId(ids)))
    const slowPart = new Schema({ n: Number }).plugin(snowflakeId(slow))
    Slow = connection.model('Slow', new Schema({ n: Number, part: slowPart }).plugin(snowflakeId(slow)))
  })
  after(async () => {
    await connection.close()
    await server.stop()
  })
  const stored = filter => Book.collection.find(filter).toArray()

  test('new has its ID; the database has the same; JSON has a string', async () => {
    const book = new Book({ name: 'new' })
    assert.ok(isId(book._id))
    assert.equal(book.id, book._id)
    await book.save()
    const [raw] = await stored({ name: 'new' })
    assert.deepEqual(raw, { _id: storedOf(book._id), name: 'new', pages: 1, chapters: [], plain: [], __v: 0 })
    assert.equal(JSON.parse(JSON.stringify(await Book.findById(book._id)))._id, book._id)
    // lean() returns the database's form.
    assert.deepEqual(await Book.findById(book._id).lean(), raw)
    assert.equal(parseId(raw._id), book._id)
    // A second save does not change the form in the database.
    await (await Book.findById(book._id)).set({ pages: 2, author: book._id }).save()
    assert.deepEqual((await stored({ name: 'new' })).map(({ _id, author, pages }) => [_id, author, pages]), [[raw._id, raw._id, 2]])
  })

  test('subdocuments by choice, in lists and alone', async () => {
    const { _id } = await Book.create({ name: 'sub', chapters: [{ title: 'a' }, { title: 'b' }], plain: [{ n: 1 }], first: { title: 'c' } })
    const [raw] = await stored({ _id: storedOf(_id) })
    const made = [...raw.chapters, raw.first].map(({ _id }) => _id)
    assert.ok(made.every(isStored))
    assert.equal(new Set([storedOf(_id), ...made]).size, 4)
    assert.ok(raw.plain[0]._id instanceof mongoose.mongo.ObjectId)
    const book = await Book.findById(_id)
    book.chapters.push({ title: 'd' })
    await book.save()
    assert.ok(isStored((await stored({ _id: storedOf(_id) }))[0].chapters[2]._id))
    assert.equal((await Book.findById(_id)).chapters.id(parseId(made[1])).title, 'b')
    assert.ok(book.toJSON().chapters.every(({ _id }) => isId(_id)))
  })

  test('an ID that is given is stored in 19 digits; references too', async () => {
    await Book.create([{ _id: '7', name: 'given' }, { _id: 9223372036854775807n, name: 'given', author: 7n }])
    assert.deepEqual((await stored({ name: 'given' })).map(({ _id, author }) => [_id, author]).sort(), [
      ['0000000000000000007', undefined], ['9223372036854775807', '0000000000000000007'],
    ])
    const book = await Book.findById('9223372036854775807').populate('author')
    assert.equal(book.author.name, 'given')
    assert.deepEqual(book.toObject().author, { _id: '7', name: 'given', pages: 1, chapters: [], plain: [], __v: 0 })
    assert.equal(book.toObject({ depopulate: true }).author, '7')
    for (const _id of [null, undefined]) {
      assert.ok(isId((await Book.create({ _id, name: 'none' }))._id))
    }
  })

  test('insertMany, also lean and raw', async () => {
    const rows = Array.from({ length: 50 }, (_, pages) => ({ name: 'many', pages }))
    await Book.insertMany(rows)
    const found = await Book.find({ name: 'many' }).sort({ _id: 1 })
    assert.deepEqual(found.map(({ pages }) => pages), rows.map(({ pages }) => pages))
    assert.ok(found.every(({ _id }) => isId(_id)))
    await Book.insertMany([{ name: 'lean' }, { name: 'lean' }], { lean: true })
    await Book.insertMany({ name: 'lean' }, { rawResult: true })
    assert.deepEqual((await stored({ name: 'lean' })).map(({ _id }) => isStored(_id)), [true, true, true])
    await Book.insertMany([])
    const documents = [new Book({ name: 'documents' }), new Book({ name: 'documents' })]
    await Book.insertMany(documents)
    assert.deepEqual((await stored({ name: 'documents' })).map(({ _id }) => _id).sort(), documents.map(({ _id }) => storedOf(_id)))
  })

  test('upserts: once an ID, and the same one the second time', async () => {
    const upserts = {
      updateOne: (filter, update) => Book.updateOne(filter, update, { upsert: true }),
      updateMany: (filter, update) => Book.updateMany(filter, update, { upsert: true }),
      findOneAndUpdate: (filter, update) => Book.findOneAndUpdate(filter, update, { upsert: true }),
      'without defaults': (filter, update) => Book.findOneAndUpdate(filter, update, { upsert: true, setDefaultsOnInsert: false }),
      bulkWrite: (filter, update) => Book.bulkWrite([{ updateOne: { filter, update, upsert: true } }]),
      'bulkWrite of many': (filter, update) => Book.bulkWrite([{ updateMany: { filter, update, upsert: true } }]),
    }
    for (const [name, upsert] of Object.entries(upserts)) {
      for (const pages of [10, 11]) {
        await upsert({ name }, pages === 10 ? { pages } : { $set: { pages }, $setOnInsert: { author: '1' } })
        const rows = await stored({ name })
        assert.equal(rows.length, 1, name)
        assert.ok(isStored(rows[0]._id), name)
        assert.equal(rows[0].pages, pages, name)
      }
    }
    await Book.updateOne({ _id: '5', name: 'named' }, { pages: 5 }, { upsert: true })
    await Book.updateOne({ $and: [{ _id: { $eq: '6' } }], name: 'named' }, { pages: 5 }, { upsert: true })
    await Book.updateOne({ name: 'named', pages: 7 }, { $setOnInsert: { _id: '8' } }, { upsert: true })
    assert.deepEqual((await stored({ name: 'named' })).map(({ _id }) => Number(_id)), [5, 6, 8])
    await Book.updateOne({ _id: { $in: [] }, name: 'not named' }, { pages: 5 }, { upsert: true })
    assert.ok(isStored((await stored({ name: 'not named' }))[0]._id))
    // Without upsert, no document is made.
    await Book.updateOne({ name: 'nobody' }, { pages: 1 })
    assert.deepEqual(await stored({ name: 'nobody' }), [])
  })

  test('an upsert by a pipeline', async () => {
    const options = { upsert: true, updatePipeline: true }
    for (const pages of [1, 2]) {
      await Book.updateOne({ name: 'pipeline' }, [{ $set: { pages } }], options)
    }
    const rows = await stored({ name: 'pipeline' })
    assert.deepEqual(rows.map(({ _id, pages }) => [isStored(_id), pages]), [[true, 2]])
  })

  test('bulkWrite inserts, bulkSave', async () => {
    await Book.bulkWrite([{ insertOne: { document: { name: 'bulk' } } }, { insertOne: { document: { _id: '9', name: 'bulk' } } }])
    assert.deepEqual((await stored({ name: 'bulk' })).map(({ _id }) => _id === '0000000000000000009' || isStored(_id)), [true, true])
    await Book.bulkSave([new Book({ name: 'bulkSave' })])
    assert.ok(isStored((await stored({ name: 'bulkSave' }))[0]._id))
  })

  test('a replacement with upsert is refused where MongoDB would make the ID', async () => {
    const says = refused('ID_INVALID', '$set', 'ObjectId')
    const replacement = { name: 'replacement' }
    await assert.rejects(Book.replaceOne({ name: 'gone' }, replacement, { upsert: true }), says)
    await assert.rejects(Book.findOneAndReplace({ name: 'gone' }, replacement, { upsert: true }), says)
    await assert.rejects(Book.bulkWrite([{ replaceOne: { filter: { name: 'gone' }, replacement, upsert: true } }]), says)
    assert.deepEqual(await stored({ name: 'replacement' }), [])
    await Book.replaceOne({ _id: '20' }, replacement, { upsert: true })
    await Book.replaceOne({ _id: '20' }, { name: 'replacement', pages: 3 })
    assert.deepEqual((await stored({ name: 'replacement' })).map(({ _id, pages }) => [Number(_id), pages]), [[20, 3]])
  })

  test('conditions take what is an ID, and times', async () => {
    const before = new Date(Date.now() - 60_000)
    const { _id } = await Book.create({ name: 'found' })
    const [short, big] = [String(BigInt(_id)), BigInt(_id)]
    for (const condition of [_id, short, big, { $in: [big] }, { $eq: short }, { $gte: short, $lte: big }]) {
      assert.deepEqual((await Book.find({ _id: condition, name: 'found' })).map(({ name }) => name), ['found'])
    }
    const since = { $gte: ids.layout.minId(before), $lt: formatId(ids.layout.maxId(new Date(Date.now() + 60_000)), 'decimal') }
    assert.deepEqual(await Book.countDocuments({ _id: since, name: 'found' }), 1)
    assert.deepEqual((await Book.aggregate([{ $match: { _id: formatId(short, 'decimal') } }])).map(({ name }) => name), ['found'])
  })

  test('a value that is not an ID is a CastError', async () => {
    for (const [_id, code] of [[2 ** 60, 'ID_INVALID'], ['507f1f77bcf86cd799439011', 'ID_INVALID'], [true, 'WRONG_TYPE']]) {
      await assert.rejects(Book.create({ _id, name: 'bad' }), ({ errors }) => errors._id.reason.code === code)
      await assert.rejects(Book.create({ author: _id, name: 'bad' }), ({ errors }) => errors.author.reason.code === code)
      await assert.rejects(async () => Book.findOne({ _id }), ({ name, code: given, reason }) => (name === 'CastError' ? reason.code : given) === code)
    }
  })

  test('ID_INVALID: the message of a CastError has the reason', async () => {
    const why = /at path "(_id|author)".*(JavaScript|decimal)/
    for (const value of [2 ** 60, '507f1f77bcf86cd799439011']) {
      await assert.rejects(Book.create({ _id: value, name: 'bad' }), ({ errors, message }) => why.test(errors._id.message) && message.includes(errors._id.message))
      await assert.rejects(Book.create({ author: value, name: 'bad' }), ({ errors }) => why.test(errors.author.message))
      await assert.rejects(async () => Book.findOne({ _id: value }), ({ message }) => why.test(message))
      await assert.rejects(async () => Book.updateOne({ name: 'bad' }, { author: value }), ({ message }) => why.test(message))
    }
  })

  test('IDs pass every validator, both ways, as JSON has them and as a program reads them', async () => {
    const reads = {
      document: _id => Book.findOne({ _id }),
      'in a list of conditions': _id => Book.findOne({ $or: [{ _id: { $in: [_id] } }] }),
      'by a pipeline': async _id => Book.hydrate((await Book.aggregate([{ $match: { _id } }, { $sort: { _id: 1 } }]))[0]),
      reference: async author => ({ _id: (await Book.findOne({ author })).author }),
      'with its referred document': async author => (await Book.findOne({ author }).populate('author')).author,
      JSON: async _id => (await Book.findOne({ _id })).toJSON(),
      object: async _id => (await Book.findOne({ _id })).toObject({ transform: document => ({ _id: document.id }) }),
      'reference in JSON': async author => ({ _id: (await Book.findOne({ author })).toJSON().author }),
    }
    for (const read of Object.values(reads)) {
      await Book.deleteMany({})
      await throughEveryValidator({
        write: _id => Book.create({ _id, author: _id, name: 'passed' }),
        read: async _id => ({ id: (await read(_id))._id }),
      })
    }
  })

  test('loading mints nothing', async () => {
    let minted = 0
    const counted = {
      next() {
        minted += 1
        return ids.next()
      },
      nextAsync: () => assert.fail(),
      batchAsync: () => assert.fail(),
    }
    const part = new Schema({ n: Number }).plugin(snowflakeId(counted))
    const Counted = connection.model('Counted', new Schema({ n: Number, parts: [part] }).plugin(snowflakeId(counted)))
    await Counted.create({ n: 1, parts: [{ n: 1 }] })
    assert.equal(minted, 2)
    const [document] = await Counted.find()
    assert.equal((await Counted.findOne().select('-_id n'))._id, undefined)
    await Counted.find().lean()
    document.n = 2
    await document.save()
    await Counted.updateMany({}, { n: 3 })
    assert.equal(minted, 2)
  })

  test('where the generator would wait a document has its ID once it is saved, and subdocuments too', async () => {
    // Slow's generator makes two IDs a second.
    await Slow.create([{ n: 1, part: { n: 1 } }, { n: 1, part: { n: 2 } }])
    await Slow.insertMany([{ n: 1, part: { n: 3 } }, { n: 1 }])
    await Slow.updateOne({ n: 2 }, { n: 2 }, { upsert: true })
    await new Slow({ n: 3 }).save({ validateBeforeSave: false })
    const rows = await Slow.collection.find().toArray()
    const made = rows.flatMap(({ _id, part }) => (part ? [_id, part._id] : [_id]))
    assert.equal(made.length, 9)
    assert.ok(made.every(id => /^\d{19}$/.test(id)), String(made))
    assert.equal(new Set(made).size, 9)
  })

  test('rows that are written without Mongoose get no ID of ours', async () => {
    const { insertedId } = await Book.collection.insertOne({ name: 'past' })
    assert.ok(insertedId instanceof mongoose.mongo.ObjectId)
  })
})

describe('without a server', () => {
  const schema = () => new Schema({ name: String })

  test('toJSON and toObject write canonical IDs, and call the transforms of the program', () => {
    const [id, other] = ['7', '8']
    const paths = () => ({ name: String, author: { ...snowflakeType, ref: 'Shown' }, others: [{ ...snowflakeType, ref: 'Shown' }], by: { editor: snowflakeType } })
    const given = { _id: id, name: '007', author: other, others: [id, other], by: { editor: other } }
    const document = (name, made, row = given) => mongoose.model(name, made).hydrate(JSON.parse(JSON.stringify(row), (_, value) => (/^[78]$/.test(value) ? storedOf(value) : value)))
    const shown = document('Shown', new Schema(paths()).plugin(snowflakeId(ids)))
    assert.deepEqual(shown.toJSON(), given)
    assert.deepEqual(shown.toObject(), given)
    assert.deepEqual([shown.id, shown.author, [...shown.others], shown.by.editor], [id, other, [id, other], other])
    assert.deepEqual(shown.toObject({ transform: false })._id, storedOf(id))

    // Transforms of the schema (also if they are set later), of Mongoose and of a call. A call's transform replaces all others.
    const rename = (_, plain) => ({ id: plain._id, author: plain.author })
    const renamed = { id, author: other }
    assert.deepEqual(document('Before', new Schema(paths(), { toJSON: { transform: rename } }).plugin(snowflakeId(ids))).toJSON(), renamed)
    assert.deepEqual(document('After', new Schema(paths()).plugin(snowflakeId(ids)).set('toJSON', { transform: rename })).toJSON(), renamed)
    assert.equal(shown.toJSON({ transform: rename }).id, id)
    mongoose.set('toJSON', { transform: rename })
    assert.deepEqual(document('Global', new Schema(paths()).plugin(snowflakeId(ids))).toJSON(), renamed)
    mongoose.set('toJSON', undefined)

    // Subdocuments with references.
    const parts = [new Schema(paths()).plugin(snowflakeId(ids))]
    assert.deepEqual(document('Post', new Schema({ parts }).plugin(snowflakeId(ids)), { _id: id, parts: [given] }).toObject(), { _id: id, parts: [given] })

    // A schema without the plugin.
    const plain = toJSON => document(`Plain${Object.keys(toJSON)}`, new Schema({ author: snowflakeType }, { toJSON, id: false }), { author: other }).toJSON()
    assert.deepEqual([plain({}), plain({ getters: true })], [{ author: storedOf(other) }, { author: other }])
  })

  test('a promise of a generator, and a function that gives one', async () => {
    const { promise: opening, resolve } = Promise.withResolvers()
    const Promised = mongoose.model('Promised', schema().plugin(snowflakeId(opening)))
    const early = new Promised({ name: 'early' })
    assert.equal(early._id, undefined)
    resolve(await Snowflake.open('standard', { node: 8, detached: true }))
    await early.validate()
    assert.equal(ids.layout.decode(early._id).node, 8)
    assert.equal(ids.layout.decode(new Promised({ name: 'late' })._id).node, 8)
    let calls = 0
    const Lazy = mongoose.model('Lazy', schema().plugin(snowflakeId(() => {
      calls += 1
      return ids
    })))
    assert.equal(calls, 0)
    assert.ok(isId(new Lazy()._id) && isId(new Lazy()._id))
    assert.equal(calls, 1)
  })

  test('save() rejects with the error of the generator', async () => {
    const manual = new Snowflake('standard', { node: 7, clock: 'manual', detached: true })
    const Manual = mongoose.model('Manual', schema().plugin(snowflakeId(manual)))
    await assert.rejects(new Manual({ name: 'a' }).validate(), error => /clock/i.test(error.message))
    const Broken = mongoose.model('Broken', schema().plugin(snowflakeId(() => Promise.reject(new FrazilError('NODE_MISSING')))))
    await assert.rejects(new Broken({ name: 'a' }).validate(), refused('NODE_MISSING'))
  })

  test('an _id of another type and a wrong generator are refused', () => {
    for (const [type, says] of [[Number, 'Number'], [Schema.Types.UUID, 'UUID']]) {
      assert.throws(() => new Schema({ _id: type }).plugin(snowflakeId(ids)), refused('WRONG_TYPE', `_id of the schema is a ${says}`))
    }
    assert.throws(() => snowflakeId(), refused('WRONG_TYPE', 'ids is '))
    const Typed = mongoose.model('Typed', new Schema({ _id: String, name: String }).plugin(snowflakeId(ids)))
    assert.ok(isId(new Typed()._id))
  })
})
