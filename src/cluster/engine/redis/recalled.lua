-- Whether nodes have answered a recall. KEYS: the name of the cluster. ARGV: the node that need not, or '', the recall's ms and number.
local name = KEYS[1]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for _, node in ipairs(redis.call('ZRANGEBYSCORE', name .. ':leases', '(' .. string.format('%.0f', now), '+inf')) do
  if node ~= ARGV[1] then
    local ms, number = string.match(redis.call('HGET', name .. ':recalled', node) or '0-0', '^(%d+)-(%d+)$')
    local ahead = tonumber(ARGV[2]) - tonumber(ms)
    if ahead > 0 or (ahead == 0 and tonumber(ARGV[3]) > tonumber(number)) then
      return 0
    end
  end
end
return 1
