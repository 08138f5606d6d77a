-- KEYS: a profile. ARGV: the milliseconds for which it is kept, 0: for ever; the most bytes of it; experiment id, variation id,
-- and so on.
local text, profile = redis.call('GET', KEYS[1]), {}
if text then
  local is_read, read = pcall(cjson.decode, text)
  if is_read and type(read) == 'table' then
    profile = read
  end
end
for at = 3, #ARGV, 2 do
  profile[ARGV[at]] = {variation_id = ARGV[at + 1]}
end
local encoded = cjson.encode(profile)
if #encoded > tonumber(ARGV[2]) then
  return
end
if tonumber(ARGV[1]) > 0 then
  redis.call('SET', KEYS[1], encoded, 'PX', ARGV[1])
else
  redis.call('SET', KEYS[1], encoded)
end
