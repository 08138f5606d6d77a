-- KEYS: the window. ARGV: the start of the window that counted the unit, length in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window = redis.call('HMGET', KEYS[1], 'start', 'count')
local start, count = tonumber(window[1]), tonumber(window[2])
if start ~= tonumber(ARGV[1]) or count < 1 or now >= start + tonumber(ARGV[2]) then
  return 0
end
redis.call('HINCRBY', KEYS[1], 'count', -1)
return 1
