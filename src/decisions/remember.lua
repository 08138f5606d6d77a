-- KEYS: a profile. ARGV: experiment id, variation id, and so on.
local text, profile = redis.call('GET', KEYS[1]), {}
if text then
  local is_read, read = pcall(cjson.decode, text)
  if is_read and type(read) == 'table' then
    profile = read
  end
end
for at = 1, #ARGV, 2 do
  profile[ARGV[at]] = {variation_id = ARGV[at + 1]}
end
redis.call('SET', KEYS[1], cjson.encode(profile))
