-- KEYS: reservations | ARGV: none
-- {now, value, end, value, end ...}: value is nil where nobody holds it or the key is not ours; end in Unix ms
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local answer = {now}
for _, key in ipairs(KEYS) do
  local value = redis.call('MGET', key)[1] -- unlike GET it passes over a hash or a list of the user's own
  local ours = value and string.sub(value, 1, 3) == 'R1 '
  local ends = ours and redis.pcall('PEXPIRETIME', key)
  if type(ends) == 'table' then -- Redis 6: what is left is by a clock that went on since TIME
    ends = math.floor(now / 1000) + redis.call('PTTL', key)
  end
  answer[#answer + 1] = ours and value
  answer[#answer + 1] = ends
end
return answer
