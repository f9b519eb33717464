local meta = meta_of(KEYS[1], KEYS[2])
-- ARGV: the slots' numbers; or 'page', the beginning of the page, and the approximate number of its
-- fields.
local memory = redis.call('INFO', 'memory')
local limit = string.match(memory, '\nmaxmemory:(%d+)') or ''
local policy = string.match(memory, '\nmaxmemory_policy:([%w-]+)') or ''

local slots, following = {}, '0'
if ARGV[1] == 'page' then
  local page = redis.call('HSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
  following, slots = page[1], page[2]
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
