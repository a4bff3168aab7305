-- Asks for a copy, or goes on asking. KEYS: the name of the cluster. ARGV: the name of the copy, or '' for the next one to be
-- sent; how many ms an ask is good for. Returns the next one, which then is no longer asked for; false if there is none.
local asked = KEYS[1] .. ':asked'
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[1] ~= '' then
  redis.call('ZADD', asked, string.format('%.0f', now), ARGV[1])
  redis.call('PEXPIRE', asked, ARGV[2])
  return false
end
redis.call('ZREMRANGEBYSCORE', asked, '-inf', '(' .. string.format('%.0f', now - tonumber(ARGV[2])))
return redis.call('ZPOPMIN', asked)[1] or false
