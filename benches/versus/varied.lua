-- The same target in every request, with another key and another X-Request-Id each time.
-- Argument: a file of keys.
dofile((debug.getinfo(1, "S").source:sub(2):match("(.*/)") or "./") .. "report.lua")

local keys, asked = {}, 0

init = function(arguments)
  for line in io.lines(arguments[1]) do keys[#keys + 1] = line end
end

request = function()
  asked = asked + 1
  wrk.headers["X-API-Key"] = keys[asked % #keys + 1]
  wrk.headers["X-Request-Id"] = string.format("versus-%09d", asked)
  return wrk.format()
end
