-- KEYS: the reservation | ARGV: none
-- 1: taken from whoever held it | 0: nobody does, or the key is not ours
local value = redis.call('MGET', KEYS[1])[1]
if value and string.sub(value, 1, 3) == 'R1 ' then
  return redis.call('DEL', KEYS[1])
end
return 0
