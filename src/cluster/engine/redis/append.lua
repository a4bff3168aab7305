-- Appends an entry. KEYS: the name of the cluster. ARGV: identity, node, number, fence or '', entry. Returns its id.
local name = KEYS[1]
local log, last, lost = unpack(redis.call('HMGET', name .. ':cluster', 'log', 'last', 'lost'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
if ARGV[4] ~= '' and redis.call('GET', name .. ':duty') ~= ARGV[2] .. ' ' .. ARGV[4] then
  return redis.error_reply('FENCED another node has the duty')
end
local id = redis.call('XADD', name .. ':log', '*',
  'after', last, 'node', ARGV[2], 'number', ARGV[3], 'fence', ARGV[4], 'entry', ARGV[5])
redis.call('HSET', name .. ':cluster', 'last', id)
return id
