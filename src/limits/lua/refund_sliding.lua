-- KEYS: the times of all units in the last window length. ARGV: the time of the units, length in ms, how many units.
-- Returns how many were given back.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now - ARGV[1] >= tonumber(ARGV[2]) then
  return 0
end
return redis.call('LREM', KEYS[1], ARGV[3], ARGV[1])
