// Makes the calls of The Odds API's sample program in JavaScript and reads the fields that it reads. Written for this test,
// as the sample comes without a licence.
// Reads PAYLOAD_URL and PAYLOAD_KEY from the environment, and stops at the first failed check.
import assert from 'node:assert/strict'

const { PAYLOAD_URL: base, PAYLOAD_KEY: apiKey } = process.env

// With the headers that axios sends.
async function get(path, params) {
  const headers = { Accept: 'application/json, text/plain, */*', 'User-Agent': 'axios/1.18.0' }
  const response = await fetch(`${base}/v4/${path}?${new URLSearchParams({ apiKey, ...params })}`, { headers })
  assert.equal(response.status, 200, path)
  return response
}

// Both at once, as the sample does.
const odds = { regions: 'us', markets: 'h2h', oddsFormat: 'decimal', dateFormat: 'iso' }
const [sports, upcoming] = await Promise.all([get('sports', {}), get('sports/upcoming/odds', odds)])

const keys = (await sports.json()).map(sport => sport.key)
assert.deepEqual(keys, [
  'americanfootball_nfl',
  'americanfootball_nfl_super_bowl_winner',
  'basketball_nba',
  'soccer_epl',
])
const events = await upcoming.json()
assert.deepEqual(events.map(event => event.id), ['nba-2', 'nba-1', 'epl-1', 'nfl-1', 'epl-2', 'superbowl-1'])
assert.deepEqual(events[0].bookmakers[0].markets[0].outcomes, [
  { name: 'Boston Celtics', price: 2 },
  { name: 'Miami Heat', price: 1.833 },
])
assert.ok(Number(upcoming.headers.get('x-requests-remaining')) > 0)
assert.ok(Number(upcoming.headers.get('x-requests-used')) > 0)

console.log('sample in Node.js: every call passed')
