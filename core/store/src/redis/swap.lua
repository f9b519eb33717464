-- ARGV: server; then, for each two keys: meta record, field ('meta' or the slot's number), old
-- record, new record, earliest, latest.
-- A record that may be absent is '-', or '+' and its text.
local function same(record, expected)
  return expected == (record and '+' .. record or '-')
end

local function swap(key, slots, expected, field, old, new, earliest, latest)
  local meta = meta_of(key, slots)
  local record = meta
  if field ~= 'meta' then
    record = redis.call('HGET', slots, field)
  end
  if server ~= ARGV[1] or not same(meta, expected) or not same(record, old) then
    return 'differs'
  end
  -- tonumber rounds numbers above 2^53, but never to a time that a clock shows.
  if now < tonumber(earliest) or now >= tonumber(latest) then
    return now_text
  end
  redis.call('HSET', slots, field, new)
  if field == 'meta' then
    redis.call('SET', key, new)
  end
  return 'done'
end

-- A refused swap leaves the others as they are.
local answers = {}
for n = 1, #KEYS / 2 do
  local at = 6 * n - 5
  local made, answer = pcall(swap, KEYS[2 * n - 1], KEYS[2 * n], unpack(ARGV, at + 1, at + 6))
  if not made and type(answer) ~= 'table' then
    answer = redis.error_reply(answer)
  end
  answers[n] = answer
end
return answers
