-- Appends an entry. KEYS: the name of the cluster. ARGV: identity, node, number, fence or '', entry. Returns its id.
local name = KEYS[1]
local log, last, lost, server, since, lease = unpack(redis.call('HMGET', name .. ':cluster',
  'log', 'last', 'lost', 'server', 'since', 'lease'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
-- A server that was restarted, or has taken over, may have lost entries that nodes have applied. Within a lease all of them
-- have said so; until then the log must not go on without those entries.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if server and (server ~= run .. ' ' .. replication or now < tonumber(since) + tonumber(lease or 0)) then
  return redis.error_reply('SETTLING since the engine was restarted')
end
if ARGV[4] ~= '' and redis.call('GET', name .. ':duty') ~= ARGV[2] .. ' ' .. ARGV[4] then
  return redis.error_reply('FENCED another node has the duty')
end
local id = redis.call('XADD', name .. ':log', '*',
  'after', last, 'node', ARGV[2], 'number', ARGV[3], 'fence', ARGV[4], 'entry', ARGV[5])
redis.call('HSET', name .. ':cluster', 'last', id)
return id
