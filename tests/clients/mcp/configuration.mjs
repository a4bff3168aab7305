// Connects as the guide tells users of desktop programs to: by the URL and headers of one configuration, and by the program
// that the other one starts.
//
//     BASE_URL=http://… KEY=sk_live_… GUIDE=…/api.md node configuration.mjs

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { BASE_URL, KEY, GUIDE } = process.env

function transport(server) {
  if (server.type === 'http') {
    return new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: server.headers } })
  }
  assert.equal(server.command, 'npx')
  // The bridge writes files of its own there.
  const MCP_REMOTE_CONFIG_DIR = mkdtempSync(join(tmpdir(), 'bridge-'))
  return new StdioClientTransport({ ...server, env: { ...getDefaultEnvironment(), ...server.env, MCP_REMOTE_CONFIG_DIR }, stderr: 'ignore' })
}

const blocks = [...readFileSync(GUIDE, 'utf8').matchAll(/```json\n(.*?)```/gs)].map((block) => block[1])
const configurations = blocks.filter((block) => block.includes('mcpServers'))
assert.equal(configurations.length, 2)
for (const text of configurations) {
  const ours = text.replaceAll('http://127.0.0.1:8080', BASE_URL).replaceAll('sk_live_ob_…', KEY)
  assert.notEqual(ours, text)
  for (const server of Object.values(JSON.parse(ours).mcpServers)) {
    const client = new Client({ name: 'oddsbox-test', version: '1.0.0' })
    await client.connect(transport(server))
    const result = await client.callTool({ name: 'service_status', arguments: {} })
    assert.equal(result.structuredContent.data.status, 'ok')
    await client.close()
  }
}
console.log('mcp: both configurations of the guide connect')
