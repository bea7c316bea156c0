-- KEYS: reservations, 4,000 at most | ARGV: what is to be left of each in ms, then the mark of each ("R1 <token> ")
-- {now, 1 or 0 ...}: 1 where it was extended at this microsecond, 0 where it is over, or held by another
local time = redis.call('TIME')
local answer = {time[1] * 1000000 + time[2]}
local values = redis.call('MGET', unpack(KEYS)) -- unlike GET it passes over a hash or a list of the user's own
for i = 1, #KEYS do
  local value, mark = values[i], ARGV[i + 1]
  local ours = value and string.sub(value, 1, #mark) == mark
  answer[i + 1] = ours and redis.call('PEXPIRE', KEYS[i], ARGV[1]) or 0
end
return answer
