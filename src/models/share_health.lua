-- Writes the states of one process, and returns those that have changed since it last read.
--
-- KEYS: 1 the states by name, 2 the names by the time of their change.
-- ARGV: 1 since when to read, 2 how many to read, 3 for how long a state counts, 4 how many there may be, 5 the bytes of
-- the largest one; then names and states. Times are microseconds.
-- Returns the time, when the states began, and for each state its name, its change and itself.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local page, ttl, most, largest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local function forget(names)
  if #names > 0 then
    redis.call('HDEL', KEYS[1], unpack(names))
    redis.call('ZREM', KEYS[2], unpack(names))
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ttl, 'LIMIT', 0, 1000))
-- What was written by a clock that was ahead would count for too long.
forget(redis.call('ZRANGEBYSCORE', KEYS[2], now + 60000000, '+inf', 'LIMIT', 0, 1000))

redis.call('HSETNX', KEYS[1], 'began', string.format('%.0f', now))
-- No two changes have one time, whatever the clock does.
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
local change = math.max(now, (tonumber(last) or 0) + 1)
for at = 6, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  redis.call('ZADD', KEYS[2], string.format('%.0f', change), ARGV[at])
  change = change + 1
end
local over = redis.call('ZCARD', KEYS[2]) - most
if over > 0 then
  forget(redis.call('ZRANGE', KEYS[2], 0, math.min(over, 1000) - 1))
end
redis.call('PEXPIRE', KEYS[1], ttl / 1000)
redis.call('PEXPIRE', KEYS[2], ttl / 1000)

local reply = { string.format('%.0f', now), redis.call('HGET', KEYS[1], 'began') }
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, page)
for at = 1, #found, 2 do
  local state = ''
  if redis.call('HSTRLEN', KEYS[1], found[at]) <= largest then
    state = redis.call('HGET', KEYS[1], found[at]) or ''
  end
  reply[#reply + 1] = found[at]
  reply[#reply + 1] = string.format('%.0f', tonumber(found[at + 1]))
  reply[#reply + 1] = state
end
return reply
