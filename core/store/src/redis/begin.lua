-- The beginning of both scripts: the server that answers, and its time.
-- KEYS: for each call the meta record, and the hash of the slots.
local info = redis.call('INFO', 'replication')
if not string.find(info, '\nrole:master\r', 1, true) then
  return redis.error_reply('READONLY not a primary')
end
local replid = string.match(info, '\nmaster_replid:(%w+)')
local run_id = string.match(redis.call('INFO', 'server'), '\nrun_id:(%w+)')
if not run_id or not replid then
  return redis.error_reply('NOIDENTITY')
end
local server = run_id .. '-' .. replid

-- Exact: Unix milliseconds are far below 2^53.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)

-- The copy among the slots shows that both keys belong together. If either was removed alone, the
-- namespace has no meta record, as after FLUSHALL.
local function meta_of(key, slots)
  local meta = redis.call('GET', key)
  return redis.call('HGET', slots, 'meta') == meta and meta
end
