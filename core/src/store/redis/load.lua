-- ARGV: the slot's number, or '' for all.
local memory = redis.call('INFO', 'memory')
local limit = string.match(memory, '\nmaxmemory:(%d+)') or ''
local policy = string.match(memory, '\nmaxmemory_policy:([%w-]+)') or ''

local slots
if ARGV[1] == '' then
  slots = redis.call('HGETALL', KEYS[2])
else
  local record = redis.call('HGET', KEYS[2], ARGV[1])
  slots = record and { ARGV[1], record } or {}
end
return { server, now_text, limit, policy, meta, slots }
