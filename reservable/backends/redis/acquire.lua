-- KEYS: the reservation | ARGV: mark ("R1 <token> "), owner, lifetime in ms
-- now: granted at this microsecond | {fence, now, ms left}: this token holds it already | nil: another does
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local value = ARGV[1] .. string.format('%.0f', now) .. ' ' .. ARGV[2]
if redis.call('SET', KEYS[1], value, 'NX', 'PX', ARGV[3]) then
  return now
end
value = redis.call('GET', KEYS[1])
if string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return false
end
return {string.match(value, '^%d+', #ARGV[1] + 1), now, redis.call('PTTL', KEYS[1])}
