// Makes the calls of The Odds API's scripts for Google Sheets (odds, odds of several sports, player props, scores) and builds
// the rows that they write. Written for this test, as the scripts come without a licence.
// Reads PAYLOAD_URL, PAYLOAD_KEY and NOW from the environment, and stops at the first failed check.
import assert from 'node:assert/strict'

const { PAYLOAD_URL: base, PAYLOAD_KEY: key, NOW } = process.env
const at = offset => new Date((Number(NOW) + offset) * 1000).toISOString().replace('.000Z', 'Z')
const HOUR = 3600

// The scripts put parameters into the address as they are, and send a content type with GET.
async function get(path) {
  const response = await fetch(`${base}/v4/sports/${path}`, { headers: { 'content-type': 'application/json' } })
  assert.equal(response.status, 200, path)
  assert.ok(Number(response.headers.get('x-requests-used')) > 0)
  assert.ok(Number(response.headers.get('x-requests-remaining')) > 0)
  return response.json()
}

const formats = 'oddsFormat=american&dateFormat=iso'
const odds = (sport, markets) => get(`${sport}/odds?apiKey=${key}&regions=us&markets=${markets}&${formats}`)

// One row for each market: the home side, the away side and the draw, or over and under.
function marketRows(events) {
  const rows = []
  for (const event of events) {
    for (const bookmaker of event.bookmakers) {
      for (const market of bookmaker.markets) {
        const named = name => market.outcomes.filter(outcome => outcome.name === name)[0]
        const isTotal = market.key === 'totals'
        const home = isTotal ? named('Over') : named(event.home_team)
        const away = isTotal ? named('Under') : named(event.away_team)
        const draw = isTotal ? {} : (named('Draw') ?? {})
        rows.push([
          event.id, event.commence_time, bookmaker.key, market.last_update, event.home_team, event.away_team, market.key,
          home.name, home.price, home.point, away.name, away.price, away.point, draw.price,
        ])
      }
    }
  }
  return rows
}

const [home, away] = ['Green Bay Packers', 'Chicago Bears']
const nfl = ['nfl-1', at(5 * HOUR), 'fanduel', at(-22), home, away]
const nflRows = [
  [...nfl, 'h2h', home, -172, undefined, away, 145, undefined, undefined],
  [...nfl, 'spreads', home, -118, -3, away, -104, 3, undefined],
]
assert.deepEqual(marketRows(await odds('americanfootball_nfl', 'h2h,spreads')), nflRows)

const several = await Promise.all(['americanfootball_nfl', 'soccer_epl'].map(sport => odds(sport, 'h2h,spreads')))
const [leeds, everton] = ['Leeds United', 'Everton']
assert.deepEqual(several.flatMap(marketRows), [
  ...nflRows,
  [
    'epl-1', at(3 * HOUR), 'betmgm', at(-60), leeds, everton, 'h2h', leeds, 110, undefined, everton, 230, undefined, 220,
  ],
])

// Player props: the events of the sport, then each event with its props.
const props = []
for (const { id } of await odds('americanfootball_nfl', 'h2h')) {
  const markets = 'player_pass_tds,player_pass_yds,player_pass_completions'
  const path = `americanfootball_nfl/events/${id}/odds?apiKey=${key}&regions=us&markets=${markets}&${formats}`
  const event = await get(path)
  for (const bookmaker of event.bookmakers) {
    for (const market of bookmaker.markets) {
      for (const { name, description, price, point } of market.outcomes) {
        props.push([event.id, bookmaker.key, market.last_update, market.key, name, description, price, point])
      }
    }
  }
}
const love = market => ['nfl-1', 'fanduel', at(-22), market]
assert.deepEqual(props, [
  [...love('player_pass_tds'), 'Over', 'Jordan Love', -142, 1.5],
  [...love('player_pass_tds'), 'Under', 'Jordan Love', 112, 1.5],
  [...love('player_pass_yds'), 'Over', 'Jordan Love', -114, 236.5],
  [...love('player_pass_yds'), 'Under', 'Jordan Love', -114, 236.5],
])

async function scoreRows(daysFrom) {
  const days = daysFrom === 0 ? '' : `&daysFrom=${daysFrom}`
  const events = await get(`americanfootball_nfl/scores?apiKey=${key}&dateFormat=iso${days}`)
  return events.map(event => {
    const score = name => (event.scores ? event.scores.filter(side => side.name === name)[0].score : null)
    const { id, commence_time, completed, last_update, home_team, away_team } = event
    return [id, commence_time, completed, last_update, home_team, score(home_team), away_team, score(away_team)]
  })
}
const open = ['nfl-1', at(5 * HOUR), false, null, home, null, away, null]
assert.deepEqual(await scoreRows(0), [open])
assert.deepEqual(await scoreRows(1), [
  ['nfl-2', at(-9 * HOUR), true, at(-6 * HOUR), 'Detroit Lions', '31', 'Dallas Cowboys', '17'],
  open,
])

console.log('samples in Apps Script: every call passed')
