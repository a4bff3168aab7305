-- Begins a log. KEYS: the name of the cluster. ARGV: the identity of the log, that of the log in whose place it is or ''.
-- Returns the id before its first entry; false if there is another log, which a node has followed.
local name = KEYS[1]
local held, last, begun = unpack(redis.call('HMGET', name .. ':cluster', 'log', 'last', 'begun'))
local is_unused = last == begun and redis.call('EXISTS', name .. ':nodes') == 0
if held and held ~= ARGV[2] and not is_unused then
  return false
end
redis.call('DEL', name .. ':log', name .. ':nodes', name .. ':leases', name .. ':duty', name .. ':cluster')
-- What is used of limits stays, and with it how often it was reset.
redis.call('DEL', name .. ':recalls', name .. ':recalled', name .. ':restated')
-- It begins after the log in whose place it is, also within the same millisecond and if the clock was set back.
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
if last then
  ms = math.max(ms, tonumber(string.match(last, '^%d+')) + 1)
end
local id = string.format('%.0f-0', ms)
-- An entry that is no operation, so that the stream has an id to begin with. It is gone before any node reads.
redis.call('XADD', name .. ':log', id, 'begin', ARGV[1])
redis.call('XTRIM', name .. ':log', 'MAXLEN', 0)
redis.call('HSET', name .. ':cluster', 'log', ARGV[1], 'last', id, 'begun', id, 'trimmed', id, 'fence', 0)
return id
