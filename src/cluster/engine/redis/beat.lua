-- Reports a node. KEYS: the name of the cluster. ARGV: identity, node, applied ms, applied number, details, lease in ms or 0,
-- file, settings. Without a node nothing is reported.
-- Returns the time, since when this server has had the data, the last entry, the last that was removed, who has the duty, and
-- all nodes, as JSON.
local name = KEYS[1]
local log, last, lost, server, since, trimmed, settings = unpack(redis.call('HMGET', name .. ':cluster',
  'log', 'last', 'lost', 'server', 'since', 'trimmed', 'settings'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
local is_report = ARGV[2] ~= ''
local applied = ARGV[3] .. '-' .. ARGV[4]
local function is_older(one, other)
  local ms, number = string.match(one, '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)-(%d+)$')
  ms, other_ms = tonumber(ms), tonumber(other_ms)
  return ms < other_ms or (ms == other_ms and tonumber(number) < tonumber(other_number))
end
-- A node that is further behind takes a copy: what it has applied cannot be looked up.
if is_report and is_older(trimmed, applied) and #redis.call('XRANGE', name .. ':log', applied, applied) == 0 then
  -- The log has lost what this node has applied. The others must not go on without that.
  redis.call('HSET', name .. ':cluster', 'lost', ARGV[2])
  return redis.error_reply('LOST the log ends before what the node has applied')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local running = run .. ' ' .. replication
if is_report and server ~= running then
  -- The one on which the log was begun has lost nothing.
  since = server and string.format('%.0f', now) or '0'
  redis.call('HSET', name .. ':cluster', 'server', running, 'since', since)
end
if is_report then
  local ends = tonumber(redis.call('ZSCORE', name .. ':leases', ARGV[2]) or 0)
  local known = redis.call('HGET', name .. ':nodes', ARGV[2])
  if known and ends > now and cjson.decode(known).file ~= ARGV[7] then
    return redis.error_reply('TAKEN another node has this name')
  end
  if ARGV[6] ~= '0' and settings ~= ARGV[8] then
    for _, other in ipairs(redis.call('ZRANGEBYSCORE', name .. ':leases', '(' .. string.format('%.0f', now), '+inf')) do
      if other ~= ARGV[2] then
        return redis.error_reply('DISAGREES with the settings of other nodes')
      end
    end
    redis.call('HSET', name .. ':cluster', 'settings', ARGV[8], 'lease', ARGV[6])
  end
  if ARGV[6] ~= '0' then
    ends = math.max(ends, now + tonumber(ARGV[6]))
  end
  local report = { applied = applied, behind = math.max(0, tonumber(string.match(last, '^%d+')) - tonumber(ARGV[3])), details = ARGV[5], file = ARGV[7] }
  redis.call('HSET', name .. ':nodes', ARGV[2], cjson.encode(report))
  redis.call('ZADD', name .. ':leases', string.format('%.0f', ends), ARGV[2])
end
local nodes = {}
local all = redis.call('ZRANGE', name .. ':leases', 0, -1, 'WITHSCORES')
for at = 1, #all, 2 do
  local node = cjson.decode(redis.call('HGET', name .. ':nodes', all[at]))
  node.node = all[at]
  node.ends = tonumber(all[at + 1])
  table.insert(nodes, node)
end
-- A list without elements would be encoded as an object.
local duty = redis.call('GET', name .. ':duty') or nil
return cjson.encode({ now = now, since = tonumber(since or 0), last = last, trimmed = trimmed, duty = duty, nodes = #nodes > 0 and nodes or nil })
