-- The rules of windows, buckets, strikes and bans, about one subject at a time. They are
-- those of package ratelimit/enginetest, whose model is the shorter text.

local floor, max, min, insert, remove = math.floor, math.max, math.min, table.insert, table.remove
local WINDOW, RECORD = 12, 21 -- bytes
local MAX_WINDOWS = 8        -- of one subject
local MAX_U32 = 4294967295
local MAX_UNITS = 9007199254740991 -- of a window
local INDEX_AFTERLIFE = 3600 -- seconds that an ended ban stays in the index
local RETURN, MAX_RETURNS = 32, 32 -- bytes, and how many of a bucket

local micros = time[2] + 0

-- numbers returns n of them, from the place i on.
local function numbers(s, i, n)
  local all = {}
  for k = 1, n do all[k] = number(s, i + 4 * k - 4) end
  return all
end

local function eight(s, i)
  return number(s, i) * (MAX_U32 + 1) + number(s, i + 4)
end

local function two(x)
  return char(floor(x / 256), x % 256)
end

local function is_calendar(length)
  return length == DAY or length == MONTH
end

-- The plan, the boundaries of its calendar windows and the spans of its smooth quotas. In arg
-- the penalty begins at rest.
local cost, quotas, lengths, limits, boundaries, spans, rest = 0, 0, {}, {}, {}, {}, 0

-- use_plan makes the plan of the take at a place in arg the one that the rules are about.
local function use_plan(at)
  cost, quotas = number(arg, at + 1), byte(arg, at + 5)
  rest = at + 6 + 8 * quotas
  local p = rest + 23 -- behind the penalty
  boundaries, spans = {}, {}
  for q = 1, quotas do
    lengths[q], limits[q] = number(arg, at + 8 * q - 2), number(arg, at + 8 * q + 2)
    if is_calendar(lengths[q]) then
      boundaries[q] = numbers(arg, p, 5)
      p = p + 20
    end
  end
  for q = 1, quotas do
    if limits[q] == WIDE_LIMIT then cost, limits[q], p = eight(arg, p), eight(arg, p + 8), p + 16 end
  end
  for q = 1, quotas do
    if lengths[q] >= SMOOTH then spans[q], p = numbers(arg, p, 6), p + 24 end
  end
end

-- open_end returns the end of the window of quota q that is open now.
local function open_end(q)
  if not boundaries[q] then return now - now % lengths[q] + lengths[q] end
  local i = 2
  while boundaries[q][i] <= now do i = i + 1 end
  return boundaries[q][i]
end

-- start_of returns the start of the window of quota q that has the given end. If it
-- opened by another calendar, that is the earliest time that it can have begun.
local function start_of(q, ending)
  if spans[q] then return ending - spans[q][3] - 2 end
  for i = 2, boundaries[q] and 5 or 0 do
    if boundaries[q][i] == ending then return boundaries[q][i - 1] end
  end
  return ending - lengths[q]
end

-- after returns the time so many nanoseconds from now, rounded up.
local function after(nanos)
  return now - floor(-(micros * 1000 + nanos) / 1000000000)
end

-- The subject at hand: its windows, in order of their lengths, and its record. Windows that
-- are new do not begin without a charge. With strikes the last ban has no length; without
-- strikes since has no meaning. The reason is as it is kept.
local subject

-- find returns the window of a length, if it is there, and where it is, or belongs.
local function find(length)
  local windows, i = subject.windows, 1
  while windows[i] and windows[i].length < length do i = i + 1 end
  return windows[i] and windows[i].length == length and windows[i], i
end

-- make opens a window. If there are too many, it drops the one of those that are not in the
-- plan that ends first; of two that end together, the shorter one.
local function make(length, ending)
  if #subject.windows == MAX_WINDOWS then
    local first, earliest
    for i, w in ipairs(subject.windows) do
      local ours = false
      for q = 1, quotas do ours = ours or lengths[q] == w.length end
      if not ours and (not first or w.ending < earliest) then first, earliest = i, w.ending end
    end
    remove(subject.windows, first)
  end
  local _, i = find(length)
  local w = {length = length, ending = ending, used = 0, new = true}
  insert(subject.windows, i, w)
  return w
end

-- Times of smooth quotas.

local function plus(s, f, more_s, more_f)
  f = f + more_f
  if f >= SECOND then return s + more_s + 1, f - SECOND end
  return s + more_s, f
end

local function minus(s, f, less_s, less_f)
  f = f - less_f
  if f < 0 then return s - less_s - 1, f + SECOND end
  return s - less_s, f
end

-- times returns a span n times, n being less than 2^17.
local function times(n, s, f)
  f = f * n
  return s * n + floor(f / SECOND), f % SECOND
end

local function later(s, f, than_s, than_f)
  return s > than_s or s == than_s and f > than_f
end

local function earlier(s, f, than_s, than_f)
  if later(s, f, than_s, than_f) then return than_s, than_f end
  return s, f
end

-- full returns when a bucket is full: not before now.
local function full(w)
  local s, f = w.ending, 0
  if w.used > 0 then s, f = s - 1, SECOND - w.used end
  if later(s, f, now, fraction) then return s, f end
  return now, fraction
end

-- set_full sets it, no later than if the limit of the quota was owed. A full bucket is
-- left out of the value.
local function set_full(w, spans, s, f)
  local most_s, most_f = plus(now, fraction, spans[3], spans[4])
  if later(s, f, most_s, most_f) then s, f = most_s, most_f end
  w.ending, w.used = 0, 0
  if later(s, f, now, fraction) then
    if f == 0 then w.ending = s else w.ending, w.used = s + 1, SECOND - f end
  end
end

-- ahead returns the latest end that a window may have: that of the window after the
-- one that is open now, and of a calendar window two lengths from now.
local function ahead(length)
  if is_calendar(length) then return now + 2 * length end
  return now - now % length + 2 * length
end

-- reason_size returns how many bytes are the reason at the front of v.
local function reason_size(v)
  return byte(v) == 255 and 2 + (byte(v, 2) or 0) or 0
end

-- record_at returns where the record in v, which has no reason, is, or would be.
local function record_at(v)
  return #v % WINDOW == 0 and #v + 1 or #v - RECORD + 1
end

-- clear forgets the record.
local function clear()
  for _, field in ipairs({'first', 'strikes', 'level', 'ban_ends', 'since', 'ban_length', 'expires'}) do
    subject[field] = 0
  end
end

-- read makes subject k the one at hand, with all that its value has.
local function read(k)
  local v, windows = values[k] or '', {}
  subject = {number = k, windows = windows, reason = sub(v, 1, reason_size(v))}
  v = sub(v, reason_size(v) + 1)
  local p = record_at(v)
  for i = 1, (p - 1) / WINDOW do
    local length, used = number(v, 8 * i - 7), number(v, (p - 1) / WINDOW * 8 + 4 * i - 3)
    local w = length >= WIDE and find(length - WIDE)
    if w then
      w.used = w.used + used * (MAX_U32 + 1)
    else
      insert(windows, {length = length, ending = number(v, 8 * i - 3), used = used})
    end
  end
  clear()
  if p > #v then return end
  subject.first = number(v, p) * 65536 + byte(v, p + 4) * 256 + byte(v, p + 5)
  subject.strikes, subject.level = byte(v, p + 6) * 256 + byte(v, p + 7), byte(v, p + 8)
  subject.ban_ends, subject.since, subject.expires = number(v, p + 9), number(v, p + 13), number(v, p + 17)
  if subject.strikes == 0 then subject.ban_length = subject.since end -- the first strike sets since anew
end

-- read_open is read without the windows that have ended and the buckets that are full. After
-- the clock stepped back, windows lie in the future. They go on, so that no quota is
-- granted twice, at most one window ahead.
local function read_open(k)
  read(k)
  local windows = subject.windows
  for i = #windows, 1, -1 do
    local w = windows[i]
    local s, f = full(w)
    if w.length < SMOOTH then w.ending = min(w.ending, ahead(w.length)) end
    if w.length < SMOOTH and w.ending <= now or w.length >= SMOOTH and not later(s, f, now, fraction) then
      remove(windows, i)
    end
  end
end

-- room returns how many of some requests fit into quota q, the time from which on the
-- next one does, and the end of its window.
local function room(q, requests)
  local w, of = find(lengths[q]), spans[q]
  if not of then return min(floor(max(limits[q] - w.used, 0) / cost), requests), w.ending, 0, w.ending end
  local s, f = full(w)
  local owed_s, owed_f = minus(s, f, now, fraction)
  local s1, f1 = minus(of[5], of[6], owed_s, owed_f)
  local fits = 0
  if s1 >= 0 then
    -- The quotient is about right.
    fits = min(floor((s1 + f1 / SECOND) / (of[1] + of[2] / SECOND)), requests)
    local s2, f2 = times(fits, of[1], of[2])
    if later(s2, f2, s1, f1) then fits = fits - 1 end
    s2, f2 = times(fits + 1, of[1], of[2])
    if fits < requests and not later(s2, f2, s1, f1) then fits = fits + 1 end
  end
  s, f = plus(s, f, of[1], of[2])
  s, f = minus(s, f, of[5], of[6])
  return fits, s, f, w.ending
end

-- charge charges requests that fit to all windows, and to the smooth quotas of the plan. An
-- admitted request clears the strikes.
local function charge(requests)
  for _, w in ipairs(subject.windows) do
    if w.length < SMOOTH then w.used = min(w.used + requests * cost, MAX_UNITS) end
  end
  for q = 1, quotas do
    if spans[q] then
      local w = find(lengths[q])
      local s, f = full(w)
      local more_s, more_f = times(requests, spans[q][1], spans[q][2])
      set_full(w, spans[q], plus(s, f, more_s, more_f))
    end
  end
  subject.strikes, subject.ban_length = 0, 0
end

local function banned()
  return subject.ban_length > 0 and subject.ban_ends > now
end

-- ban starts a ban, and ends any other. The index is where to look for bans; whether they
-- are in force, the subjects' values say.
local function ban(seconds, nanos)
  local ending, index = after(nanos) + seconds, KEYS[subjects + subject.number]
  subject.strikes, subject.ban_ends, subject.ban_length = 0, ending, ending - now
  subject.expires = max(subject.expires, ending)
  call('ZADD', index, ending, ARGV[2 + subject.number]) -- first: while a slot moves, a key that is gone is an error
  call('ZREMRANGEBYSCORE', index, '-inf', now - INDEX_AFTERLIFE)
  local last = call('ZREVRANGE', index, 0, 0, 'WITHSCORES')[2]
  call('EXPIREAT', index, last + INDEX_AFTERLIFE)
end

-- punish starts the ban that is due after the last one.
local function punish()
  local base, growth = number(arg, rest + 10), byte(arg, rest + 14)
  local longest, forgive = number(arg, rest + 15), number(arg, rest + 19)
  local level = subject.level
  if now > subject.ban_ends then level = max(level - floor((now - subject.ban_ends) / forgive), 0) end
  level = min(level + 1, 255)
  ban(min(base * growth ^ (level - 1), longest), 0)
  subject.level, subject.expires = level, max(subject.expires, subject.ban_ends + level * forgive)
end

-- strike enters requests that are limited at this instant into the record, unless the subject
-- could make them. It returns the letter of the answer and, unless that is i, how many were
-- limited before a ban began or was due.
local function strike(requests)
  local allowance, grace = byte(arg, rest) * 256 + byte(arg, rest + 1), number(arg, rest + 2)
  local decay, s = number(arg, rest + 6), subject
  local start, last_s, last_f = 0, 0, 0
  for q = 1, quotas do
    local fits, at_s, at_f, ending = room(q, 1)
    if fits == 0 and later(at_s, at_f, last_s, last_f) then start, last_s, last_f = start_of(q, ending), at_s, at_f end
  end
  if last_s == 0 then return 's', 0 end
  if allowance == 0 then return 'g', requests end
  for _, w in ipairs(s.windows) do s.expires = max(s.expires, w.ending) end
  local ms = now * 1000 + floor(micros / 1000)
  if s.first == 0 or s.first < start * 1000 or s.first > ms then s.first = ms end -- a window may begin before 1970
  if s.first >= start * 1000 and ms - s.first < grace then return 'g', requests end
  s.since = min(s.since, now) -- the clock may have stepped back
  local forgotten = floor((now - s.since) / decay)
  s.strikes, s.since = s.strikes - forgotten, s.since + forgotten * decay
  if s.strikes <= 0 then s.strikes, s.since = 0, now end
  local limited = min(max(allowance - s.strikes, 0), requests)
  s.strikes, s.ban_length = s.strikes + limited, 0
  if limited == requests then return 'd', limited end
  if not named then return 'i' end
  if named == '' then return 'h', limited end
  punish()
  return 'b', limited
end

-- value returns the windows that have begun and the record, and when the last of them ends.
-- Buckets that are full are left out.
local function value()
  local v, counters, last, s = '', '', 0, subject
  local wide, wide_counters = '', ''
  for _, w in ipairs(s.windows) do
    if w.used > 0 or w.length < SMOOTH and not w.new or w.length >= SMOOTH and w.ending > 0 then
      v = v .. four(w.length) .. four(w.ending)
      local rest = w.used % (MAX_U32 + 1)
      counters = counters .. four(rest)
      if w.used > MAX_U32 then
        wide = wide .. four(WIDE + w.length) .. four(w.ending)
        wide_counters = wide_counters .. four((w.used - rest) / (MAX_U32 + 1))
      end
      last = max(last, w.ending)
    end
  end
  v = v .. wide .. counters .. wide_counters
  if s.first > 0 or s.ban_ends > 0 then -- as there is with strikes, and with a level
    s.expires = min(s.expires, MAX_U32)
    last = max(last, s.expires)
    v = v .. four(floor(s.first / 65536)) .. two(s.first % 65536) .. two(s.strikes) .. char(s.level) ..
      four(s.ban_ends) .. four(s.strikes > 0 and s.since or s.ban_length) .. four(s.expires)
    if s.ban_length >= BY_HAND then v = s.reason .. v end
  end
  return v, last
end

-- noted returns the generation of the usage of a subject, and until when it matters. Without a
-- note one begins, by the microseconds of a time: what was lost had another one. It sets what
-- was given back to smooth quotas, by their lengths.
local returns
local function noted()
  local v = call('MGET', KEYS[#KEYS])[1] or ''
  returns = {}
  local p = 9
  while p < #v do
    local size = byte(v, p + 4) * RETURN
    returns[number(v, p)], p = sub(v, p + 5, p + 4 + size), p + 5 + size
  end
  if #v >= 8 then return number(v, 1), number(v, 5) end
  return now % 4294 * 1000000 + micros, 0
end

-- note keeps what was given back until all charges of before have come back, and longer.
local function note(generation, last)
  local v, ending = four(generation) .. four(last), last
  for length, given in pairs(returns) do
    v = v .. four(length) .. char(#given / RETURN) .. given
    ending = max(ending, number(given, #given - 15) + 2 * (length - SMOOTH))
  end
  call('SET', KEYS[#KEYS], v, 'EXAT', ending + AFTERLIFE)
end

-- store writes the value, if it has changed, and returns it.
local function store()
  local k, v, last = subject.number, value()
  if v == (values[k] or '') then return v end
  values[k] = v ~= '' and v
  if v == '' then
    call('DEL', KEYS[k])
  else
    call('SET', KEYS[k], v, 'EXAT', max(last, now) + AFTERLIFE)
  end
  return v
end
