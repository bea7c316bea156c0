-- KEYS: reservations | ARGV: none
-- {now, value, ms left, value, ms left ...}: value is nil where nobody holds it or the key is not ours
local time = redis.call('TIME')
local answer = {time[1] * 1000000 + time[2]}
for _, key in ipairs(KEYS) do
  local value = redis.call('MGET', key)[1] -- unlike GET it passes over a hash or a list of the user's own
  local ours = value and string.sub(value, 1, 3) == 'R1 '
  answer[#answer + 1] = ours and value
  answer[#answer + 1] = ours and redis.call('PTTL', key)
end
return answer
