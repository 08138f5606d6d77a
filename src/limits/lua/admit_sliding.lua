-- KEYS: the times of all admissions in the last window length, ascending. ARGV: limit, length in ms.
-- Returns whether the request was counted, how many are counted, the ms until one more fits, now.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
-- The server clock was set back: no admission may count until the clock has caught up.
local ahead = 0
while (tonumber(redis.call('LINDEX', KEYS[1], -1)) or now) > now do
  redis.call('RPOP', KEYS[1])
  ahead = ahead + 1
end
for _ = 1, ahead do
  redis.call('RPUSH', KEYS[1], now)
end
while (tonumber(redis.call('LINDEX', KEYS[1], 0)) or now) <= now - length do
  redis.call('LPOP', KEYS[1])
end
local count, admitted = redis.call('LLEN', KEYS[1]), 0
if count < limit then
  admitted, count = 1, count + 1
  redis.call('RPUSH', KEYS[1], now)
  redis.call('PEXPIRE', KEYS[1], length + 1000)
end
local first = tonumber(redis.call('LINDEX', KEYS[1], 0)) or now
return {admitted, count, first + length - now, now}
