-- Takes the duty or keeps it. KEYS: the name of the cluster. ARGV: identity, node, lease in ms.
-- Returns its fence; false if another node has it.
local name = KEYS[1]
local log, lost, server, since = unpack(redis.call('HMGET', name .. ':cluster', 'log', 'lost', 'server', 'since'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
-- A server that was restarted, or has taken over, may have forgotten who had it: that node's turn ends by itself.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if server and (server ~= run .. ' ' .. replication or now < tonumber(since) + tonumber(ARGV[3])) then
  return false
end
local held = redis.call('GET', name .. ':duty')
if held then
  local node, fence = string.match(held, '^(.*) (%d+)$')
  if node ~= ARGV[2] then
    return false
  end
  redis.call('PEXPIRE', name .. ':duty', ARGV[3])
  return tonumber(fence)
end
local fence = redis.call('HINCRBY', name .. ':cluster', 'fence', 1)
redis.call('SET', name .. ':duty', ARGV[2] .. ' ' .. fence, 'PX', ARGV[3])
return fence
