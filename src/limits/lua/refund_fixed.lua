-- KEYS: the window. ARGV: the start of the window that counted the units, length in ms, how many units.
-- Returns how many were given back: all or none.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local units = tonumber(ARGV[3])
local window = redis.call('HMGET', KEYS[1], 'start', 'count')
local start, count = tonumber(window[1]), tonumber(window[2])
if start ~= tonumber(ARGV[1]) or count < units or now >= start + tonumber(ARGV[2]) then
  return 0
end
redis.call('HINCRBY', KEYS[1], 'count', -units)
return units
