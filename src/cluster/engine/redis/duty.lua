-- Takes the duty or keeps it. KEYS: the name of the cluster. ARGV: identity, node, lease in ms.
-- Returns its fence; false if another node has it.
local name = KEYS[1]
local log, lost = unpack(redis.call('HMGET', name .. ':cluster', 'log', 'lost'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
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
