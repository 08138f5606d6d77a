-- KEYS: the window. ARGV: limit, length in ms, units wanted, the parts of the rest of which a call for several gets one.
-- Returns how many units were counted, how many are counted in all, the ms until the window ends, its start.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local window = redis.call('HMGET', KEYS[1], 'start', 'count')
local start, count = tonumber(window[1]), tonumber(window[2])
if not start or now >= start + length then
  -- A window starts with the first request after the last one has ended.
  start, count = now, 0
elseif now < start then
  -- The server clock was set back: the window must not last until the clock has caught up.
  start = now
  -- Write it even if nothing is admitted, or the next call would find the old start.
  redis.call('HSET', KEYS[1], 'start', start)
  redis.call('PEXPIRE', KEYS[1], length + 1000)
end
local units = 0
if count < limit then
  units = math.max(1, math.min(tonumber(ARGV[3]), math.floor((limit - count) / ARGV[4])))
  count = count + units
  redis.call('HSET', KEYS[1], 'start', start, 'count', count)
  redis.call('PEXPIRE', KEYS[1], length + 1000)
end
return {units, count, start + length - now, start}
