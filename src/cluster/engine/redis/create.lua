-- Begins a log. KEYS: the name of the cluster. ARGV: the identity of the log.
-- Returns the id before its first entry; false if there is a log.
local name = KEYS[1]
if redis.call('EXISTS', name .. ':cluster') == 1 then
  return false
end
redis.call('DEL', name .. ':log', name .. ':nodes', name .. ':leases', name .. ':duty', name .. ':recalls', name .. ':recalled', name .. ':resets')
-- An entry that is no operation, so that the stream has an id to begin with. It is gone before any node reads.
local id = redis.call('XADD', name .. ':log', '*', 'begin', ARGV[1])
redis.call('XTRIM', name .. ':log', 'MAXLEN', 0)
redis.call('HSET', name .. ':cluster', 'log', ARGV[1], 'last', id, 'fence', 0)
return id
