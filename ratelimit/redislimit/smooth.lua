-- Decides takes under plans with smooth quotas, in one atomic step. Keys, arguments, reply
-- and the format of values are those of limit.lua with operation T.
--
-- Part one is that of limit.lua for such plans. It would make the takes of fixed windows
-- slower if both were one script. Part two, and what part one has of records, are those
-- of limit.lua. The parts in braces are parts of group.lua too.

local call, byte, char, sub = redis.call, string.byte, string.char, string.sub

local AFTERLIFE = 5 -- seconds that a key outlives what it holds
local DAY, MONTH = 172801, 2764801

local arg, counts, name = ARGV[1], ARGV[2] or '', nil
local time = call('TIME')
local now = time[1] + 0
local fraction = time[2] * 4294967296 / 1000000 -- of now, in 2^-32 seconds
fraction = fraction - fraction % 1

local subjects = #KEYS
local values = call('MGET', unpack(KEYS)) -- false: no string
local out = {time[1], ' ', time[2], ' '} -- and two strings for each subject
local others, last_other = nil, 0 -- subjects that are left to the second part
local apart -- the boundaries of a calendar window are not around now

-- Part one.

-- The plan, its smooth quotas last, as in a value.
local cost, quotas, limits = 1, 0, {0, 0, 0, 0}
local places, lengths, starts, window_ends, spans = {}, {}, {}, {}, {} -- window_ends: 0 for smooth quotas
do
--{ the plan
  local fixed, smooth = 0, 0
  local a, b, c, d, e, f, g, h = byte(arg, 2, 6)
  cost, quotas = ((a * 256 + b) * 256 + c) * 256 + d, e
  for place = 1, quotas do
    if byte(arg, 8 * place - 1) < 128 then fixed = fixed + 1 end
  end
  -- Where the boundaries of the next calendar quota are, and the spans of the next smooth one.
  local boundaries, at = 30 + 8 * quotas, #arg + 1 - 24 * (quotas - fixed)
  smooth, fixed = fixed, 0
  for place = 1, quotas do
    a, b, c, d, e, f, g, h = byte(arg, 8 * place - 1, 8 * place + 6)
    local q
    if a < 128 then
      fixed = fixed + 1
      q = fixed
      limits[q] = ((e * 256 + f) * 256 + g) * 256 + h
      local length = ((a * 256 + b) * 256 + c) * 256 + d
      local start = now - now % length
      local ending = start + length
      if length == DAY or length == MONTH then
        local k = boundaries
        ending = 0
        while ending <= now and k < boundaries + 16 do
          e, f, g, h = byte(arg, k, k + 3)
          start, ending, k = ending, ((e * 256 + f) * 256 + g) * 256 + h, k + 4
        end
        apart = apart or k == boundaries + 4 or ending <= now
        boundaries = boundaries + 20
      end
      starts[q], window_ends[q] = start, ending
    else
      smooth = smooth + 1
      q = smooth
      window_ends[q] = 0
      for i = at, at + 16, 8 do
        a, b, c, d, e, f, g, h = byte(arg, i, i + 7)
        spans[#spans + 1] = ((a * 256 + b) * 256 + c) * 256 + d
        spans[#spans + 1] = ((e * 256 + f) * 256 + g) * 256 + h
      end
      at = at + 24
    end
    places[q], lengths[q] = place, sub(arg, 8 * place - 1, 8 * place + 2)
  end
--}
end

-- What only denials need, made by each one.
local allowance, grace, decay, ms, four, ms_bytes, now_bytes, last_end_bytes

for s = 1, apart and 0 or subjects do
  local key, v, requests = KEYS[s], values[s] or '', 1
  local letter, fresh -- the answer, and the new value; nil: left to part two
  if counts ~= '' then
    local a, b = byte(counts, 2 * s - 1, 2 * s)
    requests = a * 256 + b
  end
  local size = #v
  local record = size % 12 == 9 and size - 20 or size + 1
  local n = (record - 1) / 12

  if n <= quotas and n % 1 == 0 and values[s] ~= '' then
    local w, p, fits, ended = 1, 1, true, false -- w: the window that comes next; p: its spans
    local refusing, refusing_f, start, place = 0, 0, 0, 0 -- when the last quota that refuses one request has room, and its start
    local heads, uses, last_end, next_end = '', '', 0, 0 -- next_end: last_end after the takes
--{ the quotas
    for q = 1, quotas do
      local ending, used, there = 0, 0, w <= n and sub(v, 8 * w - 7, 8 * w - 4) == lengths[q]
      if there then
        local a, b, c, d = byte(v, 8 * w - 3, 8 * w)
        local e, f, g, h = byte(v, 8 * n + 4 * w - 3, 8 * n + 4 * w)
        ending, used, w = ((a * 256 + b) * 256 + c) * 256 + d, ((e * 256 + f) * 256 + g) * 256 + h, w + 1
      end
      if window_ends[q] > 0 then
        if there and ending <= now then
          ended, used = true, 0
        elseif there and ending ~= window_ends[q] then -- it is in the future
          w = n + 2
          break
        end
        ending = window_ends[q]
        if ending > last_end then last_end = ending end
        if used + requests * cost > limits[q] then
          fits = false
          if used + cost > limits[q] and ending > refusing then
            refusing, start, place = ending, starts[q], places[q]
          end
        end
        used = used + requests * cost
      else
        -- How long the bucket takes to be full, before the takes.
        local owed_s, owed_f = 0, 0
        if there then
          owed_s, owed_f = ending - now, -used - fraction
          while owed_f < 0 do owed_s, owed_f = owed_s - 1, owed_f + 4294967296 end
          if owed_s < 0 or owed_s == 0 and owed_f == 0 then
            ended, owed_s, owed_f = true, 0, 0
          elseif ending > last_end then
            last_end = ending
          end
        end
        local one_s, one_f, burst_s, burst_f = spans[p], spans[p + 1], spans[p + 4], spans[p + 5]
        if owed_s > spans[p + 2] or owed_s == spans[p + 2] and owed_f > spans[p + 3] then
          w = n + 2 -- more than can be owed
          break
        end
        p = p + 6
        -- And after one, and after all of them.
        local s1, f1 = owed_s + one_s, owed_f + one_f
        if f1 >= 4294967296 then s1, f1 = s1 + 1, f1 - 4294967296 end
        local more = requests == 1 and f1 or owed_f + one_f * requests
        local f2 = more % 4294967296
        local s2 = requests == 1 and s1 or owed_s + one_s * requests + (more - f2) / 4294967296
        if s2 > burst_s or s2 == burst_s and f2 > burst_f then
          fits = false
          if s1 > burst_s or s1 == burst_s and f1 > burst_f then
            local rs, rf = now + s1 - burst_s, fraction + f1 - burst_f -- when there is room
            if rf < 0 then rs, rf = rs - 1, rf + 4294967296 end
            if rf >= 4294967296 then rs, rf = rs + 1, rf - 4294967296 end
            if rs > refusing or rs == refusing and (rf > refusing_f or rf == refusing_f and places[q] < place) then
              local a, b, c, d = byte(lengths[q], 1, 4)
              refusing, refusing_f, place = rs, rf, places[q]
              start = ending - ((((a - 128) * 256 + b) * 256 + c) * 256 + d) - 2
            end
          end
        end
        ending, used = now + s2, fraction + f2 -- the time at which the bucket is full
        if used >= 4294967296 then ending, used = ending + 1, used - 4294967296 end
        if used > 0 then ending, used = ending + 1, 4294967296 - used end
      end
      if fits then
        if ending > next_end then next_end = ending end
        local d = ending % 256
        ending = (ending - d) / 256
        local c = ending % 256
        ending = (ending - c) / 256
        local b = ending % 256
        heads = heads .. lengths[q] .. char((ending - b) / 256, b, c, d)
        d = used % 256
        used = (used - d) / 256
        c = used % 256
        used = (used - c) / 256
        b = used % 256
        uses = uses .. char((used - b) / 256, b, c, d)
      end
    end
--}

    if w == n + 1 then
--{ limit.lua: read the record }
      if strikes == 0 and since > 0 and ban_ends > now then -- since: the length
        if not ended and ban_ends <= now + since then
          letter, fresh = 'd\0\0\0\0' .. char(size), v
        end

      elseif fits then
        fresh, last_end = heads .. uses, next_end
--{ limit.lua: keep the record }
        if v ~= '' then
          call('SET', key, fresh, 'EXAT', (expires > last_end and expires or last_end) + AFTERLIFE)
--{ limit.lua: a new key }

      elseif refusing > 0 and not ended then -- every request is refused
        local open = n == quotas
        allowance = nil
--{ limit.lua: refuse }
      end
    end
  end

  if fresh then
    out[2 * s + 3], out[2 * s + 4] = letter, fresh
  else
    out[2 * s + 3], out[2 * s + 4] = '', ''
    others = others or {}
    last_other = last_other + 1
    others[last_other] = s
  end
end
if not others and not apart then return table.concat(out) end

--{ limit.lua: everything else }
