// Calls every tool with the official TypeScript SDK of the Model Context Protocol, which also checks each answer against the
// schema that its tool declares.
//
//     BASE_URL=http://… KEY=sk_live_… node client.mjs

import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { BASE_URL, KEY } = process.env
const TOOLS = ['list_sports', 'find_events', 'get_odds', 'best_prices', 'fair_odds', 'edges', 'line_history', 'service_status']

const client = new Client({ name: 'oddsbox-test', version: '1.0.0' })
const requestInit = { headers: { 'X-API-Key': KEY } }
await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', BASE_URL), { requestInit }))
assert.equal(client.getServerVersion().name, 'oddsbox')
assert.match(client.getInstructions(), /list_sports/)
await client.ping()
const { tools } = await client.listTools()
assert.deepEqual(tools.map(({ name }) => name), TOOLS)
assert.ok(tools.every(({ annotations }) => annotations.readOnlyHint))

async function dataOf(name, args) {
  const result = await client.callTool({ name, arguments: args })
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`)
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent)
  assert.ok(result.structuredContent.age_s >= 0)
  return result.structuredContent.data
}

assert.equal((await dataOf('service_status', {})).status, 'ok')
assert.ok((await dataOf('list_sports', {})).sports.some(({ key, events }) => key === 'tennis' && events > 0))
assert.equal((await dataOf('find_events', { sport: 'tennis', limit: 5 })).length, 5)
const odds = await dataOf('get_odds', { sport: 'tennis', odds_format: 'decimal', limit: 3 })
assert.equal(odds.length, 3)
assert.ok((await dataOf('best_prices', { sport: 'tennis', event_ids: [odds[0].event_id] })).length > 0)
assert.ok((await dataOf('fair_odds', { sport: 'tennis', method: 'power', limit: 2 })).length > 0)
await dataOf('edges', { sport: 'tennis', kind: 'arbitrage' })
assert.ok((await dataOf('line_history', { sport: 'tennis', event_id: odds[0].event_id })).lines.length > 0)
const wrong = await client.callTool({ name: 'get_odds', arguments: { sport: 'quidditch' } })
assert.ok(wrong.isError && wrong.content[0].text.includes('no such sport'))
await assert.rejects(client.callTool({ name: 'burn', arguments: {} }), /no such tool/)
await client.close()
console.log(`mcp (TypeScript): ${TOOLS.length} tools called`)
