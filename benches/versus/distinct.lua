-- A different request each time, with one of many keys, so that no cached answer applies.
-- Arguments: a file of keys, a file of event ids, to ask the same again and again instead, after how many,
-- and a query.
dofile((debug.getinfo(1, "S").source:sub(2):match("(.*/)") or "./") .. "report.lua")

-- A run begins elsewhere than the one before, whose answers may still be cached.
math.randomseed(os.time())
local keys, events, asked, turn = {}, {}, math.random(2 ^ 30), 2 ^ 52
local query = "limit=100&regions=us,uk,eu,au"

init = function(arguments)
  for line in io.lines(arguments[1]) do keys[#keys + 1] = line end
  for line in io.lines(arguments[2]) do events[#events + 1] = line end
  turn = tonumber(arguments[3]) or turn
  query = arguments[4] or query
end

request = function()
  asked = asked + 1
  local count = asked % turn
  local first = (count * 7919) % #events + 1
  local second = (count * 104729 + math.floor(count / #events)) % #events + 1
  local path = string.format(
    "/v1/sports/american_football/odds?event_ids=%s,%s&%s",
    events[first], events[second], query)
  return wrk.format("GET", path, { ["X-API-Key"] = keys[asked % #keys + 1] })
end
