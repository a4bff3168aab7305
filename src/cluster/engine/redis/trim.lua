-- Removes old entries. KEYS: the name of the cluster. ARGV: identity, how many ms are kept, how many bytes.
local name = KEYS[1]
local log, last, lost = unpack(redis.call('HMGET', name .. ':cluster', 'log', 'last', 'lost'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function ms_of(id)
  return tonumber(string.match(id, '^(%d+)-'))
end
local before = now - tonumber(ARGV[2])
local first = redis.call('XRANGE', name .. ':log', '-', '+', 'COUNT', 1)[1]
if first and (redis.call('MEMORY', 'USAGE', name .. ':log') or 0) > tonumber(ARGV[3]) then
  before = math.max(before, math.floor((ms_of(first[1]) + now) / 2))
end
for _, node in ipairs(redis.call('ZRANGEBYSCORE', name .. ':leases', '(' .. string.format('%.0f', now), '+inf')) do
  before = math.min(before, ms_of(cjson.decode(redis.call('HGET', name .. ':nodes', node)).applied))
end
if redis.call('XTRIM', name .. ':log', 'MINID', string.format('%.0f', before)) > 0 then
  first = redis.call('XRANGE', name .. ':log', '-', '+', 'COUNT', 1)[1]
  -- Its first field is the entry before it.
  redis.call('HSET', name .. ':cluster', 'trimmed', first and first[2][2] or last)
end
return true
