-- Counts the use of a key anew, and tells nodes. KEYS: the name of the cluster. ARGV: identity, key, how many recalls are kept,
-- which limits.
local name = KEYS[1]
if redis.call('HGET', name .. ':cluster', 'log') ~= ARGV[1] then
  return redis.error_reply('LOST the log of this cluster')
end
redis.call('HINCRBY', name .. ':resets', ARGV[2], 1)
return redis.call('XADD', name .. ':recalls', 'MAXLEN', '~', ARGV[3], '*', 'key', ARGV[2], 'limits', ARGV[4], 'reset', '1')
