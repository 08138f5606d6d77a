-- KEYS: the times of all units in the last window length, ascending. ARGV: limit, length in ms, units wanted, the parts
-- of the rest of which a call for several gets one, how long several may be held in ms.
-- Returns how many units were counted, how many are counted in all, the ms until one more fits, the time of the units.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, length, held = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])
-- The server clock was set back: no unit may count until the clock has caught up.
local ahead = 0
while (tonumber(redis.call('LINDEX', KEYS[1], -1)) or now) > now + held do
  redis.call('RPOP', KEYS[1])
  ahead = ahead + 1
end
for _ = 1, ahead do
  redis.call('RPUSH', KEYS[1], now + held)
end
while (tonumber(redis.call('LINDEX', KEYS[1], 0)) or now) <= now - length do
  redis.call('LPOP', KEYS[1])
end
-- A unit never comes before one that is counted already.
local at = math.max(now, tonumber(redis.call('LINDEX', KEYS[1], -1)) or now)
local count, units = redis.call('LLEN', KEYS[1]), 0
if count < limit then
  units = math.max(1, math.min(tonumber(ARGV[3]), math.floor((limit - count) / ARGV[4])))
  count = count + units
  -- Units that are held count from now on, and as if they were spent at the last moment.
  if units > 1 then
    at = now + held
  end
  for _ = 1, units do
    redis.call('RPUSH', KEYS[1], at)
  end
  redis.call('PEXPIRE', KEYS[1], length + 1000)
end
local first = tonumber(redis.call('LINDEX', KEYS[1], 0)) or now
return {units, count, first + length - now, at}
