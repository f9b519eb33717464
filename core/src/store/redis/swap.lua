-- ARGV: server, meta record, field ('meta' or the slot's number), old record, new record, earliest, latest.
-- A record that may be absent is '-', or '+' and its text.
local function same(record, expected)
  return expected == (record and '+' .. record or '-')
end

local field, new = ARGV[3], ARGV[5]
local record
if field == 'meta' then
  record = meta
else
  record = redis.call('HGET', KEYS[2], field)
end
if server ~= ARGV[1] or not same(meta, ARGV[2]) or not same(record, ARGV[4]) then
  return 'differs'
end
-- tonumber rounds what is above 2^53, but never to a time that a clock shows.
if now < tonumber(ARGV[6]) or now >= tonumber(ARGV[7]) then
  return now_text
end
redis.call('HSET', KEYS[2], field, new)
if field == 'meta' then
  redis.call('SET', KEYS[1], new)
end
return 'done'
