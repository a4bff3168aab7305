-- A node has so many streams of a key open. KEYS: the name of the cluster. ARGV: identity, node, key, how many, how many all
-- nodes may have. Returns whether that is allowed.
local name = KEYS[1]
if redis.call('HGET', name .. ':cluster', 'log') ~= ARGV[1] then
  return redis.error_reply('LOST the log of this cluster')
end
local node, key, open = ARGV[2], ARGV[3], tonumber(ARGV[4])
local function of(other)
  return tonumber(redis.call('HGET', name .. ':streams:' .. other, key) or 0)
end
if open > of(node) then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local all = open
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', name .. ':leases', '(' .. string.format('%.0f', now), '+inf')) do
    if other ~= node then
      all = all + of(other)
    end
  end
  if all > tonumber(ARGV[5]) then
    return 0
  end
end
if open == 0 then
  redis.call('HDEL', name .. ':streams:' .. node, key)
else
  redis.call('HSET', name .. ':streams:' .. node, key, open)
end
return 1
