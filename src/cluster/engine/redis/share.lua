-- Gives shares of limits. KEYS: the name of the cluster. ARGV: identity, node, since when the node restates what it has or '',
-- and for each key: key, resets, then for the
-- burst, the day and the month: window or period, what the node has of it, wanted, limit, or -1 if it needs no more of it,
-- and what all nodes had used of it when this one was started.
-- Returns for each key, in the same order: resets; window, elapsed, before, after, total; period, before, after, total, twice.
local name = KEYS[1]
local log, lost, server, since, lease = unpack(redis.call('HMGET', name .. ':cluster',
  'log', 'lost', 'server', 'since', 'lease'))
if log ~= ARGV[1] or lost then
  return redis.error_reply('LOST the log of this cluster')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- A server that was restarted, or has taken over, may have forgotten what it gave to a node that has not restated it.
local function may_have_forgotten()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  if server ~= run .. ' ' .. replication then
    return true
  end
  if now >= tonumber(since) + tonumber(lease or 0) then
    return false
  end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', name .. ':leases', '(' .. string.format('%.0f', now), '+inf')) do
    if redis.call('HGET', name .. ':restated', other) ~= since then
      return true
    end
  end
  return false
end
if ARGV[3] ~= '' then
  redis.call('HSET', name .. ':restated', ARGV[2], ARGV[3])
elseif server and may_have_forgotten() then
  return redis.error_reply('SETTLING since the engine was restarted')
end
local live = math.max(1, redis.call('ZCOUNT', name .. ':leases', '(' .. string.format('%.0f', now), '+inf'))
local node = 'node ' .. ARGV[2]

local function whole(number)
  return string.format('%.0f', number)
end

-- What this node had of a limit, what it has now, and what all have. A node that has more than is known here has it from
-- before the engine lost that.
local function give(key, own, wanted, limit)
  local total, had = unpack(redis.call('HMGET', key, 'total', node))
  total, had = tonumber(total or 0), tonumber(had or 0)
  local before = math.max(had, own)
  total = total + before - had
  local left = math.max(0, limit - total)
  -- The less is left, the smaller are the shares: little then has to be given back.
  local share = math.min(wanted, left, math.max(1, math.floor(left / (4 * live))))
  if before + share > had then
    redis.call('HSET', key, 'total', whole(total + share), node, whole(before + share))
  end
  return before, before + share, total + share
end

-- Answers are numbers of Redis and not JSON, which would round them.
local answer = {}

local function quota(key, at, resets, is_same, keep_s)
  local period, own, wanted, limit, stored = unpack(ARGV, at, at + 4)
  local before, after, total = 0, 0, 0
  if tonumber(limit) >= 0 then
    own = is_same and own or 0
    key = key .. ':' .. period .. ':' .. resets
    if resets == '0' and tonumber(stored) > 0 and redis.call('EXISTS', key) == 0 then
      redis.call('HSET', key, 'total', stored)
    end
    before, after, total = give(key, tonumber(own), tonumber(wanted), tonumber(limit))
    redis.call('EXPIRE', key, keep_s)
  end
  for _, number in ipairs({ tonumber(period), before, after, total }) do
    table.insert(answer, number)
  end
end

local function burst(key, at)
  local window, own, wanted, limit = unpack(ARGV, at, at + 3)
  local opened, before, after, total = 0, 0, 0, 0
  if tonumber(limit) >= 0 then
    opened = tonumber(redis.call('HGET', key, 'opened') or 0)
    local is_new = opened == 0
    if is_new then
      -- One that is not over, and not known here, is from before the engine was restarted.
      opened = math.max(tonumber(window), now - 60000)
      if opened == now - 60000 then
        opened = now
      end
      redis.call('HSET', key, 'opened', whole(opened))
    end
    own = tonumber(window) == opened and tonumber(own) or 0
    before, after, total = give(key, own, tonumber(wanted), tonumber(limit))
    if is_new then
      redis.call('PEXPIRE', key, whole(math.max(1, opened + 60000 - now)))
    end
  end
  for _, number in ipairs({ opened, math.max(0, now - opened), before, after, total }) do
    table.insert(answer, number)
  end
end

for at = 4, #ARGV, 17 do
  local key, known = ARGV[at], ARGV[at + 1]
  local resets = redis.call('HGET', name .. ':resets', key) or '0'
  table.insert(answer, tonumber(resets))
  burst(name .. ':burst:' .. key, at + 2)
  quota(name .. ':day:' .. key, at + 7, resets, resets == known, 3 * 86400)
  quota(name .. ':month:' .. key, at + 12, resets, resets == known, 40 * 86400)
end
return answer
