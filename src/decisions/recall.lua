-- KEYS: a profile. ARGV: the milliseconds for which it is kept after its last use. One that is kept for ever, as the original
-- agent writes it, stays so.
local left, keep = redis.call('PTTL', KEYS[1]), tonumber(ARGV[1])
if left >= 0 and left < keep / 2 then
  redis.pcall('PEXPIRE', KEYS[1], keep)
end
return redis.call('GET', KEYS[1])
