-- Takes back what a node has not used. KEYS: the name of the cluster. ARGV: identity, node, the recall that it answers or '',
-- and for each key: key, resets, window, burst, day, of the day, month, of the month.
local name = KEYS[1]
if redis.call('HGET', name .. ':cluster', 'log') ~= ARGV[1] then
  return redis.error_reply('LOST the log of this cluster')
end
local function take_back(key, unused)
  if tonumber(unused) > 0 and redis.call('EXISTS', key) == 1 then
    redis.call('HINCRBY', key, 'total', '-' .. unused)
  end
end
for at = 4, #ARGV, 8 do
  local key, resets, window, burst, day, of_day, month, of_month = unpack(ARGV, at, at + 7)
  if redis.call('HGET', name .. ':burst:' .. key, 'opened') == window then
    take_back(name .. ':burst:' .. key, burst)
  end
  take_back(name .. ':day:' .. key .. ':' .. day .. ':' .. resets, of_day)
  take_back(name .. ':month:' .. key .. ':' .. month .. ':' .. resets, of_month)
end
if ARGV[3] ~= '' then
  redis.call('HSET', name .. ':recalled', ARGV[2], ARGV[3])
end
return true
