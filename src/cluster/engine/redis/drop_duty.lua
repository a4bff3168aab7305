-- Gives the duty up. KEYS: the name of the cluster. ARGV: node.
local held = redis.call('GET', KEYS[1] .. ':duty')
if held and string.match(held, '^(.*) %d+$') == ARGV[1] then
  redis.call('DEL', KEYS[1] .. ':duty')
end
return true
