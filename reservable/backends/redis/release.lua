-- KEYS: the reservation | ARGV: mark ("R1 <token> ")
-- 1: released | 0: nobody holds it | -1: another does
-- No shebang line: a plain script may DEL when the memory is full, on Redis 6 and 7 alike.
local value = redis.call('GET', KEYS[1])
if not value then
  return 0
end
if string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return -1
end
return redis.call('DEL', KEYS[1])
