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
-- answer to each of its takes, or one of three letters:
--   i  nothing was done: it would start a ban, and the names were not given
--   c  nothing was done, for no group: the boundaries are not around the server's time
--   e  nothing was done: a key holds a value of something else; its number 1
-- The answers to takes are those of limit.lua to so many requests, and
--   s  granted 2, 0 2; the others were not made, since another       then a value
--      take of the group was refused
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
-- their ends.
local plans, at, apart = {}, 2, false
for p = 1, byte(packed, 1) do
  local a, b, c, d, e, f, g, h, quotas, _
  a, _, b, c, d, e, quotas = byte(packed, at, at + 6)
  local plan = {arg = sub(packed, at + 1, at + a), cost = ((b * 256 + c) * 256 + d) * 256 + e, quotas = quotas}
  local limits, heads, last_end, begin = {}, '', 0, at
  local boundaries, starts = begin + 30 + 8 * quotas, {} -- of calendar windows
  at = at + a + 1
  for q = 1, quotas do
    a, b, c, d, e, f, g, h = byte(packed, begin + 8 * q - 1, begin + 8 * q + 6)
    limits[q] = ((e * 256 + f) * 256 + g) * 256 + h
    local length = ((a * 256 + b) * 256 + c) * 256 + d
    local ending = now - now % length + length
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
    if length >= 2147483648 then ending = 0 end -- a smooth quota: left to part two
    if ending > last_end then last_end = ending end
    h = ending % 256
    ending = (ending - h) / 256
    g = ending % 256
    ending = (ending - g) / 256
    f = ending % 256
    heads = heads .. char(a, b, c, d, (ending - f) / 256, f, g, h)
  end
  if sub(plan.arg, 1, 1) == 'T' then heads = false end
  plan.limits, plan.heads, plan.last_end, plan.size, plan.starts = limits, heads, last_end, 12 * quotas, starts
  plans[p] = plan
end
if apart then
  while at <= #packed do
    out[#out + 1] = 'c'
    at = at + 2 * byte(packed, at) + 3
  end
  return table.concat(out)
end

-- Part one: groups whose subjects all have the open windows of their plans, if all
-- requests are granted, or all are refused in a way that changes nothing. As in limit.lua
-- it has no functions, and what it leaves to part two costs time and changes no answer.
local others, last_other, written = nil, 0, {}
local group, ms = 4, time[2] / 1000
ms = now * 1000 + ms - ms % 1
while at <= #packed do
  local members, high, low = byte(packed, at, at + 2)
  local requests, known, refused, partly = high * 256 + low, not ARGV[2], false, false
  local fresh, letters = {}, {} -- the values after the takes, and the answers of subjects that refuse
  for m = 1, members do
    local k, p = byte(packed, at + 2 * m + 1, at + 2 * m + 2)
    local plan, v = plans[p], values[k]
    local quotas, size = plan.quotas, plan.size
    known = known and v and (#v == size or #v == size + 21) and sub(v, 1, 8 * quotas) == plan.heads
    if not known then break end

    local after, refusing, start = plan.heads, 0, 0 -- end and start of the window that refuses
    for q = 1, quotas do
      local a, b, c, d = byte(v, 8 * quotas + 4 * q - 3, 8 * quotas + 4 * q)
      local used = ((a * 256 + b) * 256 + c) * 256 + d
      local sum = used + requests * plan.cost
      if used + plan.cost > plan.limits[q] then
        local a, b, c, d, e, f, g, h = byte(v, 8 * q - 7, 8 * q)
        local ending = ((e * 256 + f) * 256 + g) * 256 + h
        if ending > refusing then
          refusing, start = ending, plan.starts[q] or ending - (((a * 256 + b) * 256 + c) * 256 + d)
        end
      elseif sum > plan.limits[q] then
        partly = true
      else
        d = sum % 256
        sum = (sum - d) / 256
        c = sum % 256
        sum = (sum - c) / 256
        b = sum % 256
        after = after .. char((sum - b) / 256, b, c, d)
      end
    end

    local first, expires, banned = 0, 0, false
    if #v > size then
      local f1, f2, f3, f4, f5, f6, s1, s2, _, e1, e2, e3, e4, i1, i2, i3, i4, x1, x2, x3, x4 = byte(v, size + 1, size + 21)
      local strikes, since = s1 * 256 + s2, ((i1 * 256 + i2) * 256 + i3) * 256 + i4
      local ban_ends = ((e1 * 256 + e2) * 256 + e3) * 256 + e4
      first = ((((f1 * 256 + f2) * 256 + f3) * 256 + f4) * 256 + f5) * 256 + f6
      expires = ((x1 * 256 + x2) * 256 + x3) * 256 + x4
      banned = strikes == 0 and since > 0 and ban_ends > now -- since: the length
      if expires <= now or banned and ban_ends > now + since then
        known = false
        break
      end
      if strikes > 0 or since > 0 then
        after = after .. sub(v, size + 1, size + 6) .. '\0\0' .. sub(v, size + 9, size + 13) .. '\0\0\0\0' .. sub(v, size + 18)
      else
        after = after .. sub(v, size + 1)
      end
    end

    if banned then
      refused, letters[m] = true, 'd\0\0\0\0'
    elseif refusing > 0 then
      if not plan.grace then
        local a, b, c, d, e, f = byte(plan.arg, 7 + 8 * quotas, 12 + 8 * quotas)
        plan.grace = a + b > 0 and ((c * 256 + d) * 256 + e) * 256 + f or -1
      end
      -- Without strikes, and within the grace of a record that lasts, nothing changes.
      if plan.grace >= 0 and (first < start * 1000 or first > ms or ms - first >= plan.grace or expires < plan.last_end) then
        known = false
        break
      end
      refused, letters[m] = true, 'g\0\0' .. char(high, low)
    else
      fresh[m] = after
    end
  end

  group = group + 1
  if known and (refused or not partly) then
    local answer = ''
    for m = 1, members do
      local k = byte(packed, at + 2 * m + 1)
      if refused then
        answer = answer .. (letters[m] or 's\0\0\0\0') .. char(#values[k]) .. values[k]
      else
        values[k], written[k] = fresh[m], true
        answer = answer .. 'a' .. char(#fresh[m]) .. fresh[m]
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
for k in pairs(written) do call('SET', keys[k], values[k], 'KEEPTTL') end
if not others then return table.concat(out) end

-- Part two: everything else.

local arg, name, cost, quotas, limits, four = plans[1].arg, nil, 0, 0, {}, nil

--{ limit.lua: functions }

-- use makes the plan the one that the functions are about.
local function use(plan)
  arg, cost, quotas, limits, rest = plan.arg, plan.cost, plan.quotas, plan.limits, 7 + 8 * plan.quotas
  for q = 1, quotas do windows[q] = number(arg, 8 * q - 1) end
  read_boundaries(rest + 23)
end

-- keep and restore set the state of a subject aside, and take it up again.
local function keep(s)
  s.n, s.lengths, s.ends, s.used = n, lengths, ends, used
  s.first, s.strikes, s.level, s.ban_ends, s.since, s.length, s.expires = first, strikes, level, ban_ends, since, length, expires
end

local function restore(s)
  use(s.plan)
  n, lengths, ends, used = s.n, s.lengths, s.ends, s.used
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
-- were limited; it returns false if a ban would start that cannot.
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
      s.letter, s.limited = strike(refused)
    end
  end
  keep(s)
  return s.letter ~= 'i'
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
  for _, s in ipairs(takes) do
    if not charge_and_strike(s, s.subject, granted, requests - granted) then return 'i' end
  end
  local answers = {}
  for m, s in ipairs(takes) do answers[m] = change(s, s.subject, granted) end
  return table.concat(answers)
end

for i = 1, last_other, 2 do out[others[i]] = decide(others[i + 1]) end
return table.concat(out)
