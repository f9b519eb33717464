// The search of the guide: `SECTIONS` are its sections, as conf.py has found them.

/** Returns a function from a query to the pages that answer it, the best first: each with its sections, the best first. */
function searcher(MiniSearch, sections) {
  const index = new MiniSearch({
    fields: ['words', 'title', 'page', 'text'],
    storeFields: ['page', 'title', 'text'],
    // A name of code is found as a whole, and by its words.
    tokenize: (text) => [...MiniSearch.getDefault('tokenize')(text), ...(text.match(/\w+_\w+/g) ?? [])],
    processTerm: (term) => stem(term.toLowerCase()),
    searchOptions: {
      boost: { words: 8, title: 4, page: 2 },
      // A reference lists every name, and the first page every page; the guide explains them.
      boostDocument: (id) => (/^(site|index)\b/.test(id) ? 0.4 : 1),
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : 0),
    },
  })
  index.addAll(sections)
  return (query) => {
    let found = index.search(query, { combineWith: 'AND' })
    if (found.length === 0) found = index.search(query)
    const pages = new Map()
    for (const section of found) {
      const path = section.id.split('#')[0]
      if (!pages.has(path)) pages.set(path, [])
      pages.get(path).push(section)
    }
    return [...pages.values()]
  }
}

/** A word without its ending: `leases` and `leasing` find `lease`. */
function stem(word) {
  return word.length > 4 ? word.replace(/(ies|es|s|ing|ed|e|y)$/, '') : word
}

/** The text around the first word of a query, with the words of the query marked. */
function excerpt({ text, terms }) {
  // The rest of a word counts, but not after one or two letters.
  const any = terms.map((term) => term.replace(/\W/g, '\\$&') + (term.length > 2 ? '[\\p{L}\\p{N}]*' : '(?![\\p{L}\\p{N}])'))
  const word = new RegExp(`(?<![\\p{L}\\p{N}])(?:${any.join('|')})`, 'giu')
  const first = Math.max(0, text.search(word) - 60)
  const begin = first && text.indexOf(' ', first) + 1
  const shown = text.slice(begin, begin + 200).replace(/\s\S*$/, text.length > begin + 200 ? ' …' : '$&')
  const line = document.createElement('p')
  let at = 0
  for (const match of shown.matchAll(word)) {
    const mark = document.createElement('mark')
    mark.append(match[0])
    line.append(shown.slice(at, match.index), mark)
    at = match.index + match[0].length
  }
  line.append(shown.slice(at))
  if (begin) line.prepend('… ')
  return line
}

function link({ id, title }) {
  const anchor = document.createElement('a')
  anchor.href = id
  anchor.append(title)
  return anchor
}

function show(pages, query) {
  const items = pages.slice(0, 20).map((page) => {
    const [best, ...more] = page
    const item = document.createElement('li')
    const heading = document.createElement('h2')
    heading.append(link(best))
    item.append(heading)
    if (best.title !== best.page) heading.before(Object.assign(document.createElement('small'), { textContent: best.page }))
    item.append(excerpt(best))
    if (more.length > 0) {
      const others = document.createElement('small')
      others.append('Also: ', ...more.slice(0, 3).flatMap((section, place) => (place ? [' · ', link(section)] : [link(section)])))
      item.append(others)
    }
    return item
  })
  document.getElementById('found').replaceChildren(...items)
  const count = pages.length === 1 ? '1 page' : `${pages.length || 'No'} pages`
  document.getElementById('count').textContent = query && `${count} for “${query}”`
}

if (typeof document === 'undefined') {
  module.exports = { searcher }
} else {
  const find = searcher(MiniSearch, SECTIONS)
  const box = document.querySelector('.sidebar-search')
  box.value = new URLSearchParams(location.search).get('q') ?? ''
  const update = () => show(box.value.trim() ? find(box.value) : [], box.value.trim())
  box.addEventListener('input', update)
  update()
}
