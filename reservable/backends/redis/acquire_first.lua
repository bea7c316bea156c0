-- KEYS: reservations, the most wanted first | ARGV: mark ("R1 <token> "), owner, lifetime in ms
-- {which key, fence, now, ms left}: granted, now or by an earlier call with this token | nil: others hold them all
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mark, length, free = ARGV[1], #ARGV[1], nil
for first = 1, #KEYS, 4000 do -- unpack() cannot push more than 8,000 values
  local values = redis.call('MGET', unpack(KEYS, first, math.min(first + 3999, #KEYS)))
  for i = 1, #values do
    local value = values[i]
    if not value then
      free = free or first + i - 1
    elseif string.sub(value, 1, length) == mark then
      local which = first + i - 1
      return {which, string.match(value, '^%d+', length + 1), now, redis.call('PTTL', KEYS[which])}
    end
  end
end
local value = mark .. string.format('%.0f', now) .. ' ' .. ARGV[2]
for which = free or #KEYS + 1, #KEYS do -- goes on where a hash or a list of the user's only looked free
  if redis.call('SET', KEYS[which], value, 'NX', 'PX', ARGV[3]) then
    return {which, now, now, tonumber(ARGV[3])}
  end
end
return false
