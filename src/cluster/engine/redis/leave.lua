-- Ends a node's lease and its duty. KEYS: the name of the cluster. ARGV: node, '1' if it is to be forgotten.
local name = KEYS[1]
local held = redis.call('GET', name .. ':duty')
if held and string.match(held, '^(.*) %d+$') == ARGV[1] then
  redis.call('DEL', name .. ':duty')
end
if ARGV[2] == '1' then
  redis.call('HDEL', name .. ':nodes', ARGV[1])
  redis.call('HDEL', name .. ':recalled', ARGV[1])
  return redis.call('ZREM', name .. ':leases', ARGV[1])
end
local known = redis.call('HGET', name .. ':nodes', ARGV[1])
if not known then
  return 0
end
local report = cjson.decode(known)
report.left = true
redis.call('HSET', name .. ':nodes', ARGV[1], cjson.encode(report))
redis.call('ZADD', name .. ':leases', 'XX', 0, ARGV[1])
return 1
