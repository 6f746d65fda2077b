-- Decides groups of takes in one atomic step: of each group all takes are made, or
-- none. Groups are decided one after the other, and may share subjects. The functions
-- of part two, and the format of a subject's value, are those of limit.lua.
--
-- KEYS     One key for each subject; no two are equal. If names are given, the index
--          of bans of each subject follows, in the same order.
-- ARGV[1]  In binary: the number of plans 1; for each its size 1, and the operation t
--          as limit.lua has it; then for each group the number of its takes 1, how
--          many requests make them 2, and for each take the numbers of its subject 1
--          and of its plan 1, from 1.
-- ARGV[2]  ... The name of each subject in the index, or none.
--
-- The reply is the server's time, as in limit.lua, and for each group either the
-- answer to each of its takes, or one of four letters:
--   i  nothing was done: it would start a ban, and the names were not given
--   c  nothing was done, for no group: the boundaries are not around the server's time
--   e  nothing was done: a subject's key holds a value of something else; the number
--      of its take in the group 1
--   x  no take was made: the same of the subject's index of bans
-- The answers to takes are those of limit.lua to so many requests, and
--   s  granted 2, 0 2; the others were not made, since another       then a value, which
--      take of the group was refused                                 may have what is over
-- Requests of one group are decided as if they had come one after the other at this
-- instant: some are granted, all takes of them, and then none. So after the first one
-- that is refused the subjects have nothing to do with each other any more.

local call, byte, char, sub = redis.call, string.byte, string.char, string.sub

local AFTERLIFE = 5 -- seconds that a key outlives what it holds
local DAY, MONTH = 172801, 2764801

local packed, keys = ARGV[1], {unpack(KEYS)} -- the functions find the index as KEYS[2]
local subjects = ARGV[2] and #KEYS / 2 or #KEYS
local time = call('TIME')
local now = time[1] + 0
local values = call('MGET', unpack(KEYS, 1, subjects)) -- as they are now; false: no string
local out = {time[1], ' ', time[2], ' '} -- and a string for each group

-- The plans: each has its windows as a value has them, if all are open, and the last of
-- their ends. One with a smooth quota has what smooth.lua has instead.
local plans, at, apart, fraction = {}, 2, false, nil
for p = 1, byte(packed, 1) do
  local a, b, c, d, e, f, g, h, quotas, op
  a, op, b, c, d, e, quotas = byte(packed, at, at + 6)
  local arg, cost, limits = sub(packed, at + 1, at + a), ((b * 256 + c) * 256 + d) * 256 + e, {0, 0, 0, 0}
  local begin, starts = at, {0, 0, 0, 0}
  at = at + a + 1
  if op == 84 then -- T
    fraction = time[2] * 4294967296 / 1000000
    fraction = fraction - fraction % 1
    local places, lengths, window_ends, spans = {}, {}, {}, {}
--{ smooth.lua: the plan }
    plans[p] = {
      arg = arg, cost = cost, quotas = quotas, limits = limits, places = places, lengths = lengths, starts = starts,
      window_ends = window_ends, spans = spans,
    }
  else
    local heads, last_end, boundaries, ends = '', 0, begin + 30 + 8 * quotas, {0, 0, 0, 0}
    for q = 1, quotas do
      a, b, c, d, e, f, g, h = byte(packed, begin + 8 * q - 1, begin + 8 * q + 6)
      limits[q] = ((e * 256 + f) * 256 + g) * 256 + h
      local length = ((a * 256 + b) * 256 + c) * 256 + d
      local ending = now - now % length + length
      starts[q] = ending - length
      if length == DAY or length == MONTH then
        local k, times = 1, {0}
        while times[k] <= now and k <= 4 do
          e, f, g, h = byte(packed, boundaries + 4 * k - 4, boundaries + 4 * k - 1)
          k = k + 1
          times[k] = ((e * 256 + f) * 256 + g) * 256 + h
        end
        apart = apart or k == 2 or times[k] <= now
        starts[q], ending, boundaries = times[k - 1], times[k], boundaries + 20
      end
      ends[q] = ending
      if ending > last_end then last_end = ending end
      h = ending % 256
      ending = (ending - h) / 256
      g = ending % 256
      ending = (ending - g) / 256
      f = ending % 256
      heads = heads .. char(a, b, c, d, (ending - f) / 256, f, g, h)
    end
    plans[p] = {
      arg = arg, cost = cost, quotas = quotas, heads = heads, limits = limits, starts = starts, ends = ends, last_end = last_end,
    }
  end
end
if apart then
  while at <= #packed do
    out[#out + 1] = 'c'
    at = at + 2 * byte(packed, at) + 3
  end
  return table.concat(out)
end

-- Part one: groups whose subjects all have windows of their plans only, if all requests
-- are granted, or all are refused and start no ban. As in limit.lua it has no functions,
-- and what it leaves to part two costs time and changes no answer. Under plans with smooth
-- quotas subjects are looked at as in smooth.lua.
local others, last_other, group = nil, 0, 4
-- Of a group, written before they are read: values after the takes, what is before them in
-- the answer, and when they expire; 0: as before.
local granted, fronts, expiries = {'', ''}, {'', ''}, {0, 0}
local written = {} -- when the keys that were written expire; 0: as before
local allowance, grace, decay, ms, four, ms_bytes, now_bytes, last_end_bytes -- made by each denial
while at <= #packed do
  local members, high, low = byte(packed, at, at + 2)
  local requests, known, partly = high * 256 + low, not ARGV[2], false
  local answers, struck -- of subjects that refuse, if there are any, and their values after strikes
  for m = 1, members do
    local k, p = byte(packed, at + 2 * m + 1, at + 2 * m + 2)
    local plan, v = plans[p], values[k] or ''
    local arg, cost, quotas, heads, last_end = plan.arg, plan.cost, plan.quotas, plan.heads, plan.last_end
    local size = #v
    local record = size % 12 == 9 and size - 20 or size + 1
    local n = (record - 1) / 12
    if not known or n > quotas or n % 1 ~= 0 or v == '' and (values[k] or call('EXISTS', keys[k]) == 1) then
      known = false
      break
    end

    local open, w, uses, fits, ended
    local refusing, start = 0, 0 -- when the last quota that refuses has room, and the start of its window
    if heads then
      open, w, uses, fits, ended = n == quotas and sub(v, 1, 8 * n) == heads, 1, '', true, false
      for q = 1, quotas do
        local used = 0
        if open or w <= n and sub(v, 8 * w - 7, 8 * w) == sub(heads, 8 * q - 7, 8 * q) then
          local a, b, c, d = byte(v, 8 * n + 4 * w - 3, 8 * n + 4 * w)
          used = ((a * 256 + b) * 256 + c) * 256 + d
          w = w + 1
        elseif w <= n and sub(v, 8 * w - 7, 8 * w - 4) == sub(heads, 8 * q - 7, 8 * q - 4) then
          local a, b, c, d = byte(v, 8 * w - 3, 8 * w)
          if ((a * 256 + b) * 256 + c) * 256 + d <= now then w, ended = w + 1, true end
        end
        local sum = used + requests * cost
        if sum > plan.limits[q] then
          fits = false
          if used + cost > plan.limits[q] and plan.ends[q] > refusing then
            refusing, start = plan.ends[q], plan.starts[q]
          end
        elseif fits then
          local d = sum % 256
          sum = (sum - d) / 256
          local c = sum % 256
          sum = (sum - c) / 256
          local b = sum % 256
          uses = uses .. char((sum - b) / 256, b, c, d)
        end
      end
    else
      local limits, places, lengths, starts = plan.limits, plan.places, plan.lengths, plan.starts
      local window_ends, spans = plan.window_ends, plan.spans
      local p, refusing_f, place, next_end = 1, 0, 0, 0
      w, uses, fits, ended, heads, last_end = 1, '', true, false, '', 0
--{ smooth.lua: the quotas }
      if fits then last_end = next_end else open = n == quotas end
    end
    if w ~= n + 1 then
      known = false
      break
    end

--{ limit.lua: read the record }
    local letter, fresh
    if strikes == 0 and since > 0 and ban_ends > now then -- since: the length
      if ended or ban_ends > now + since then known = false end
      answers, struck = answers or {}, struck or {}
      answers[m] = 'd\0\0\0\0' .. char(size) .. v
    elseif fits then
      fresh = heads .. uses
--{ limit.lua: keep the record }
      granted[m], fronts[m], expiries[m] = fresh, letter, open and 0 or (expires > last_end and expires or last_end) + AFTERLIFE
    elseif refusing > 0 then
      allowance = nil
--{ limit.lua: strike }
      if ended or not fresh then -- not fresh: a ban starts
        known = false
        break
      end
      answers, struck = answers or {}, struck or {}
      answers[m] = letter .. fresh
      if fresh ~= v then struck[m], expiries[m] = fresh, (open or expires >= last_end) and 0 or last_end + AFTERLIFE end
    else
      partly = true
    end
    if not known then break end
  end
  group = group + 1
  if known and (answers or not partly) then
    local answer = ''
    for m = 1, members do
      local k, v = byte(packed, at + 2 * m + 1), granted[m]
      if not answers then
        answer = answer .. fronts[m] .. v
      elseif answers[m] then
        v = struck[m]
        answer = answer .. answers[m]
      else
        v = nil -- the subject keeps what it has
        local kept = values[k] or ''
        answer = answer .. 's\0\0\0\0' .. char(#kept) .. kept
      end
      if v then
        local before = written[k] or 0
        values[k], written[k] = v, expiries[m] > before and expiries[m] or before
      end
    end
    out[group] = answer
  else
    out[group], others = '', others or {}
    others[last_other + 1], others[last_other + 2] = group, at
    last_other = last_other + 2
  end
  at = at + 2 * members + 3
end
for k, expiry in pairs(written) do
  if expiry == 0 then
    call('SET', keys[k], values[k], 'KEEPTTL')
  else
    call('SET', keys[k], values[k], 'EXAT', expiry)
  end
end
if not others then return table.concat(out) end

-- Part two: everything else.

local arg, name, cost, quotas, limits = plans[1].arg, nil, 0, 0, {}

--{ limit.lua: functions }

-- use makes the plan the one that the functions are about.
local function use(plan)
  arg, cost, quotas, rest = plan.arg, plan.cost, plan.quotas, 7 + 8 * plan.quotas
  for q = 1, quotas do windows[q], limits[q] = number(arg, 8 * q - 1), number(arg, 8 * q + 3) end
  read_boundaries(rest + 23)
end

-- keep and restore set the state of a subject aside, and take it up again.
local function keep(s)
  s.n, s.lengths, s.ends, s.used, s.opened = n, lengths, ends, used, opened
  s.first, s.strikes, s.level, s.ban_ends, s.since, s.length, s.expires = first, strikes, level, ban_ends, since, length, expires
end

local function restore(s)
  use(s.plan)
  n, lengths, ends, used, opened = s.n, s.lengths, s.ends, s.used, s.opened
  first, strikes, level, ban_ends, since, length, expires = s.first, s.strikes, s.level, s.ban_ends, s.since, s.length, s.expires
end

-- ours reports whether a subject's key holds what the scripts wrote, or nothing.
local function ours(key, v)
  if not v then return call('EXISTS', key) == 0 end
  local windows_size = record_at(v) - 1
  return v ~= '' and windows_size >= 0 and windows_size % WINDOW == 0 and windows_size <= MAX_WINDOWS * WINDOW
end

-- look reads the subject k, and says how many of some takes would be granted.
local function look(s, k, requests)
  local v = values[k] or ''
  use(s.plan)
  read_open(v)
  open_plan()
  read_record(v)
  expire()
  cut()
  local fits = banned() and 0 or requests
  for q = 1, quotas do fits = min(fits, (room(q, fits))) end
  keep(s)
  return fits
end

-- charge_and_strike makes the takes that are granted. The others are strikes, unless the
-- subject is banned, or could make them. It sets the letter of the answer and how many
-- were limited. It returns the letter: i if a ban would start that cannot, and x if the
-- index is a value of something else.
local function charge_and_strike(s, k, granted, refused)
  restore(s)
  if granted > 0 then
    charge(granted)
    strikes, length = 0, 0
  end
  s.letter, s.limited = refused > 0 and 's' or 'a', 0
  if refused > 0 and banned() then
    s.letter = 'd'
  elseif refused > 0 then
    local fits = 1
    for q = 1, quotas do fits = min(fits, (room(q, 1))) end
    if fits == 0 then
      name, KEYS[2] = ARGV[k + 1], keys[subjects + k]
      local done
      done, s.letter, s.limited = pcall(strike, refused)
      if not done then
        if sub(s.letter.err or s.letter, 1, 9) ~= 'WRONGTYPE' then error(s.letter) end
        s.letter = 'x'
      end
    end
  end
  keep(s)
  return s.letter
end

-- change writes what became of the subject, and returns the answer.
local function change(s, k, granted)
  restore(s)
  local counts = s.letter == 'a' and '' or two(granted) .. two(s.limited)
  if s.letter == 's' and granted == 0 then return answer('s' .. counts, store(nil, '')) end
  local v = store(keys[k], values[k] or '')
  values[k] = v ~= '' and v
  return answer(s.letter .. counts, v)
end

local function decide(at)
  local members, requests, takes = byte(packed, at), byte(packed, at + 1) * 256 + byte(packed, at + 2), {}
  local granted = requests
  for m = 1, members do
    local k, p = byte(packed, at + 2 * m + 1, at + 2 * m + 2)
    if not ours(keys[k], values[k]) then return 'e' .. char(m) end
    takes[m] = {plan = plans[p], subject = k}
    granted = min(granted, look(takes[m], k, requests))
  end
  for m, s in ipairs(takes) do
    local letter = charge_and_strike(s, s.subject, granted, requests - granted)
    if letter == 'i' then return 'i' end
    if letter == 'x' then return 'x' .. char(m) end
  end
  local answers = {}
  for m, s in ipairs(takes) do answers[m] = change(s, s.subject, granted) end
  return table.concat(answers)
end

for i = 1, last_other, 2 do out[others[i]] = decide(others[i + 1]) end
return table.concat(out)
