-- KEYS: the window, the processes. ARGV: limit, length in ms.
-- Answers whether the request was counted, how many are, the ms until the window ends, its start, the processes.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local window = redis.call('HMGET', KEYS[1], 'start', 'count')
local start, count = tonumber(window[1]), tonumber(window[2])
if not start or now >= start + length then
  -- Begins with the first request after the last one ended.
  start, count = now, 0
elseif now < start then
  -- The clock of the server was set back: the window must not last until it has caught up.
  start = now
  -- Also where nothing is admitted: the next question would find the old start again.
  redis.call('HSET', KEYS[1], 'start', start)
  redis.call('PEXPIRE', KEYS[1], length + 1000)
end
local admitted = 0
if count < limit then
  admitted, count = 1, count + 1
  redis.call('HSET', KEYS[1], 'start', start, 'count', count)
  redis.call('PEXPIRE', KEYS[1], length + 1000)
end
return {admitted, count, start + length - now, start, redis.call('ZCARD', KEYS[2])}
