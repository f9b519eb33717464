local meta = meta_of(KEYS[1], KEYS[2])
-- ARGV: the slots' numbers; or 'page', where it begins, and how many fields it has, more or less.
local memory = redis.call('INFO', 'memory')
local limit = string.match(memory, '\nmaxmemory:(%d+)') or ''
local policy = string.match(memory, '\nmaxmemory_policy:([%w-]+)') or ''

local slots, following = {}, '0'
if ARGV[1] == 'page' then
  local page = redis.pcall('HSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
  if page.err then
    -- An account of before has no right to HSCAN.
    slots = redis.call('HGETALL', KEYS[2])
  else
    following, slots = page[1], page[2]
  end
else
  for _, node in ipairs(ARGV) do
    local record = redis.call('HGET', KEYS[2], node)
    if record then
      slots[#slots + 1] = node
      slots[#slots + 1] = record
    end
  end
end
return { server, now_text, limit, policy, meta, slots, following }
