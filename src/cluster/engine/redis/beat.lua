-- Reports a node. KEYS: the name of the cluster. ARGV: identity, node, applied ms, applied number, details, lease in ms or 0.
-- Returns the time, since when this server has had the data, the last entry, who has the duty, and all nodes, as JSON.
local name = KEYS[1]
local log, last, lost, server, since = unpack(redis.call('HMGET', name .. ':cluster', 'log', 'last', 'lost', 'server', 'since'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
local ms, number = string.match(last, '^(%d+)-(%d+)$')
local ahead = tonumber(ARGV[3]) - tonumber(ms)
if ahead > 0 or (ahead == 0 and tonumber(ARGV[4]) > tonumber(number)) then
  -- Nodes that had not come as far must not go on without what this one has.
  redis.call('HSET', name .. ':cluster', 'lost', ARGV[2])
  return redis.error_reply('LOST the log ends before what the node has applied')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local running = run .. ' ' .. replication
if server ~= running then
  -- The one on which the log was begun has lost nothing.
  since = server and string.format('%.0f', now) or '0'
  redis.call('HSET', name .. ':cluster', 'server', running, 'since', since)
end
local ends = tonumber(redis.call('ZSCORE', name .. ':leases', ARGV[2]) or 0)
if ARGV[6] ~= '0' then
  ends = math.max(ends, now + tonumber(ARGV[6]))
end
redis.call('HSET', name .. ':nodes', ARGV[2], cjson.encode({ applied = ARGV[3] .. '-' .. ARGV[4], details = ARGV[5] }))
redis.call('ZADD', name .. ':leases', string.format('%.0f', ends), ARGV[2])
local nodes = {}
local all = redis.call('ZRANGE', name .. ':leases', 0, -1, 'WITHSCORES')
for at = 1, #all, 2 do
  local node = cjson.decode(redis.call('HGET', name .. ':nodes', all[at]))
  node.node = all[at]
  node.ends = tonumber(all[at + 1])
  table.insert(nodes, node)
end
local duty = redis.call('GET', name .. ':duty') or nil
return cjson.encode({ now = now, since = tonumber(since), last = last, duty = duty, nodes = nodes })
