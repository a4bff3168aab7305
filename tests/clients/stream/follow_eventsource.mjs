// Keeps a board of prices by the stream with the npm package eventsource, through a lost connection, and compares it with
// Get Odds. Reads BASE_URL and KEY of a running `oddsbox demo` from the environment, and stops at the first failed check.
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { EventSource } from 'eventsource'

const { BASE_URL: base, KEY: key } = process.env
const sports = ['baseball', 'basketball', 'mma', 'tennis']
const filters = 'regions=us,uk&odds_format=decimal'
const KINDS = ['hello', 'snapshot', 'ready', 'odds', 'event', 'score', 'source', 'beat', 'reset', 'bye']
const deadline = setTimeout(() => { throw new Error('there was no moment to compare at') }, 120_000)

// Between the client and the service: cut() ends all connections with no word, and further ones until mend().
const sockets = new Set()
let isCut = false
const proxy = createServer(client => {
  if (isCut) return client.destroy()
  const service = connect(new URL(base).port, new URL(base).hostname)
  for (const [one, other] of [[client, service], [service, client]]) {
    sockets.add(one.pipe(other))
    other.on('error', () => {}).on('close', () => { one.destroy(); sockets.delete(other) })
  }
})
await new Promise(resolve => proxy.listen(0, '127.0.0.1', resolve))
const cut = () => { isCut = true; sockets.forEach(socket => socket.destroy()) }
const mend = () => { isCut = false }

const headers = { 'X-API-Key': key }
async function get(path) {
  const response = await fetch(new URL(path, base), { headers })
  assert.equal(response.status, 200, path)
  return response
}

/** All records of Get Odds by id, and the positions that the pages stand at. */
async function getOdds() {
  const records = new Map()
  const positions = new Set()
  for (const sport of sports) {
    for (let path = `/v1/sports/${sport}/odds?limit=500&${filters}`; path;) {
      const response = await get(path)
      positions.add(response.headers.get('x-position'))
      for (const record of await response.json()) records.set(record.id, record)
      path = response.headers.get('link')?.match(/<([^>]+)>; rel="next"/)[1]
    }
  }
  return { records, positions: [...positions] }
}

const board = new Map()
let position = ''
let kinds = []

/** Applies an event; the position is that of the last event with an id. */
function apply({ type, data: text, lastEventId }) {
  const data = JSON.parse(text)
  kinds.push(type)
  if (type === 'reset' || (type === 'hello' && !position)) board.clear()
  for (const record of data.records ?? []) board.set(record.id, record)
  for (const id of data.closed ?? []) board.delete(id)
  if (type === 'event' && data.status === 'removed') {
    for (const [id, record] of board) {
      if (record.sport_key === data.sport_key && record.event_id === data.id) board.delete(id)
    }
  }
  position = lastEventId || position
}

const withoutTimes = records => new Map([...records].map(([id, { last_update: _, ...rest }]) => [id, rest]))

/** Compares the board with Get Odds at the first beat at which both stand at the same position. */
async function compare() {
  for (;;) {
    await new Promise(resolve => source.addEventListener('beat', resolve, { once: true }))
    const [at, followed] = [position, withoutTimes(board)]
    const { records, positions } = await getOdds()
    if (positions.length !== 1 || positions[0] !== at) continue
    assert.ok(records.size > 0)
    const expected = withoutTimes(records)
    const ids = new Set([...expected.keys(), ...followed.keys()])
    const wrong = [...ids].filter(id => !isDeepStrictEqual(followed.get(id), expected.get(id)))
    assert.deepEqual(wrong, [], `of ${records.size} records these differ at ${at}`)
    return
  }
}

const resumedFrom = []
const url = `http://127.0.0.1:${proxy.address().port}/v1/stream?sports=${sports}&${filters}`
const source = new EventSource(url, {
  fetch: (input, init) => {
    resumedFrom.push(init.headers['Last-Event-ID'])
    return fetch(input, { ...init, headers: { ...init.headers, ...headers } })
  },
})
for (const kind of KINDS) source.addEventListener(kind, apply)

while (!kinds.includes('odds')) await new Promise(resolve => source.addEventListener('beat', resolve, { once: true }))
await compare()
assert.deepEqual(resumedFrom, [undefined])
assert.ok(kinds.includes('ready'))

cut()
await new Promise(resolve => source.addEventListener('error', resolve, { once: true }))
const before = position
kinds = []
for (;;) {
  const changes = await (await get(`/v1/changes?since=${before}&sports=${sports}&${filters}`)).json()
  if (changes.records.length > 0) break
  await new Promise(resolve => setTimeout(resolve, 500))
}
mend()

await compare()
assert.equal(resumedFrom.at(-1), before)
assert.ok(kinds.includes('odds'), kinds.join())
for (const kind of ['snapshot', 'ready', 'reset']) assert.ok(!kinds.includes(kind), 'it did not continue where it was')
clearTimeout(deadline)
source.close()
cut()
proxy.close()
console.log(`eventsource (npm): ${board.size} records are those of Get Odds, before and after a reconnection that missed changes`)
