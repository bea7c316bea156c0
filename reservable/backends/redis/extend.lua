-- KEYS: the reservation | ARGV: mark ("R1 <token> "), what is to be left of it in ms
-- now: extended at this microsecond | nil: over, or held by another; what is over is never brought back
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return false
end
local time = redis.call('TIME')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return time[1] * 1000000 + time[2]
