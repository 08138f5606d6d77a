-- KEYS: about the users of an SDK key whose profiles were written. ARGV: a user, the most users, the milliseconds for which
-- they are counted; 0: for ever.
if redis.call('PFCOUNT', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('PFADD', KEYS[1], ARGV[1])
if tonumber(ARGV[3]) > 0 and redis.call('PTTL', KEYS[1]) < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
