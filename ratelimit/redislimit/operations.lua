-- The operations, and the takes that fast.lua has left.

-- ours reports whether the key of subject k holds what the script wrote, or nothing.
local function ours(k)
  local v = values[k]
  if not v then return call('EXISTS', KEYS[k]) == 0 end
  v = sub(v, reason_size(v) + 1)
  local windows_size = record_at(v) - 1
  return v ~= '' and windows_size >= 0 and windows_size % WINDOW == 0 and windows_size <= 2 * MAX_WINDOWS * WINDOW
end

-- grantable reads subject k, opens the windows of the plan that are missing, and returns how
-- many of some takes would be granted.
local function grantable(k, requests)
  read_open(k)
  for q = 1, quotas do
    local w = find(lengths[q]) or make(lengths[q], spans[q] and 0 or open_end(q))
    if spans[q] then set_full(w, spans[q], full(w)) end
  end
  if subject.expires <= now then clear() end
  if subject.ban_length > 0 then -- otherwise the end says since when a level is forgiven
    -- A clock that stepped back makes no ban longer.
    subject.ban_ends = min(subject.ban_ends, after(0) + subject.ban_length % BY_HAND)
  end
  local fits = banned() and 0 or requests
  for q = 1, quotas do fits = min(fits, (room(q, fits))) end
  return fits
end

-- charge_and_strike makes the takes that are granted. The others are strikes, unless the
-- subject is banned. It returns the letter of the answer, x if the index is a value of
-- something else, and how many were limited.
local function charge_and_strike(granted, refused)
  if granted > 0 then charge(granted) end
  if refused == 0 then return 'a', 0 end
  if banned() then return 'd', 0 end
  local done, letter, limited = pcall(strike, refused)
  if done then return letter, limited end
  if sub(letter.err or letter, 1, 9) ~= 'WRONGTYPE' then error(letter) end
  return 'x'
end

local function answer(letter, v)
  local size = reason_size(v)
  return letter .. sub(v, 1, size) .. char(#v - size) .. sub(v, size + 1)
end

-- decide makes all takes of a group, or none: some requests are granted, then some limited,
-- and the rest banned, as if they had come one after the other at this instant. After
-- the first one that is refused the subjects have nothing to do with each other any more.
local function decide(at, members, requests)
  local granted, takes = requests, {}
  for m = 1, members do
    local k, p = at, 1
    if grouped then k, p = byte(arg, at + 2 * m + 1, at + 2 * m + 2) end
    if not ours(k) then return grouped and 'e' .. char(m) or 'e' end
    local plan = grouped and plans[p][11] or 1
    use_plan(plan)
    granted = min(granted, grantable(k, requests))
    takes[m] = {plan = plan, subject = subject}
  end
  for m, take in ipairs(takes) do
    subject = take.subject
    use_plan(take.plan)
    take.letter, take.limited = charge_and_strike(granted, requests - granted)
    if take.letter == 'i' then return 'i' end
    if take.letter == 'x' then return grouped and 'x' .. char(m) or 'x' end
  end
  local answers = {}
  for m, take in ipairs(takes) do
    subject = take.subject
    local front = take.letter == 'a' and 'a' or take.letter .. two(granted) .. two(take.limited)
    local charged = granted > 0 or take.letter ~= 's'
    answers[m] = answer(front, charged and store() or (value()))
    if hold and granted > 0 then hold(m, values[m]) end
  end
  return table.concat(answers)
end

-- The operations on one subject, k, whose value is v.
local operations = {}

-- opened_later reports whether a window of a kind was opened after the charge, whose window
-- ends earlier. Calendar windows that are open at once can end at different times, and add
-- what is in doubt; those that follow each other are at least so long apart.
local function opened_later(length, ending, charged)
  if not is_calendar(length) then return ending > charged end
  return op == 'r' and ending - charged >= (length == DAY and 72000 or 2419200)
end

-- give_back gives units of a charge back to a bucket, as far as GiveBack in package gcra does,
-- which has the reasons.
local function give_back(w, spans)
  local back_s, back_f, limit_s, limit_f, at_s, at_f, after_s, after_f = unpack(spans)
  local generation, leased = noted()
  local given = returns[w.length] or ''
  local s, f = full(w)
  s, f = earlier(s, f, plus(now, fraction, limit_s, limit_f))
  local left_s, left_f = minus(s, f, now, fraction)
  if later(now, fraction, at_s, at_f) then -- some of it may be back
    local since_s, since_f = now, fraction
    for p = #given - RETURN + 1, 1, -RETURN do -- the last one first
      local of_s, of_f, full_s, full_f, time_s, time_f, span_s, span_f = unpack(numbers(given, p, 8))
      if later(at_s, at_f, time_s, time_f) then break end
      if p == 1 and #given == MAX_RETURNS * RETURN then return end
      if not later(of_s, of_f, at_s, at_f) then since_s, since_f = plus(since_s, since_f, span_s, span_f) end
      if of_s == at_s and of_f == at_f and later(full_s, full_f, after_s, after_f) then
        after_s, after_f = full_s, full_f
      end
    end
    left_s, left_f = earlier(left_s, left_f, minus(after_s, after_f, since_s, since_f))
  end
  back_s, back_f = earlier(back_s, back_f, left_s, left_f)
  if not later(back_s, back_f, 0, 0) then return end
  given = sub(given, max(#given - (MAX_RETURNS - 1) * RETURN, 0) + 1)
  for _, x in ipairs({at_s, at_f, spans[7], spans[8], now, fraction, back_s, back_f}) do given = given .. four(x) end
  returns[w.length] = given
  note(generation, leased)
  set_full(w, spans, minus(s, f, back_s, back_f))
end

-- change_window adds units to the window of a length, or gives them back, if it is still the
-- one that was charged: with the end that it had then, or an earlier one if the clock stepped
-- back. Units that are added open a window, and a charge from after its end moves it.
local function change_window(length, ending, second)
  local w = find(length)
  if ending <= now or w and opened_later(length, w.ending, ending) then return end
  if op == 'r' then
    if w then w.used = max(w.used - cost, 0) end
    return
  end
  ending = min(ending, ahead(length))
  if not w then
    w = make(length, ending)
  elseif second >= w.ending then
    w.ending = ending
  end
  w.used = min(w.used + cost, MAX_UNITS)
end

local function change_bucket(length, spans)
  local w = find(length)
  if op == 'r' then
    if w then give_back(w, spans) end
    return
  end
  w = w or make(length, 0)
  local s, f = full(w)
  set_full(w, spans, plus(s, f, spans[1], spans[2]))
end

local ENDED = 'x' -- in front of a hold
local FORGET = MAX_UNITS - MAX_U32 -- what its score is more than when it can be forgotten

-- change_subject changes what a charge to the subject at hand costs. With anew, so many units are
-- added to fixed windows instead.
local function change_subject(anew)
  local smooth, fixed = op, op
  cost, quotas = anew or eight(arg, 2), byte(arg, 14)
  if anew then fixed = anew > 0 and 'a' or 'r' end
  local second, windows = number(arg, 10), byte(arg, 15)
  for q = 1, quotas do lengths[q] = number(arg, 8 * q + 8) end
  local bucket = 16 + 8 * windows -- where the spans of the next smooth quota are
  for p = 16, 8 + 8 * windows, 8 do
    local length, ending = number(arg, p), number(arg, p + 4)
    if length < SMOOTH then
      op = fixed
      change_window(length, ending, second)
    else
      op = smooth
      if ending > 0 then change_bucket(length, numbers(arg, bucket, 8)) end
      bucket = bucket + 32
    end
  end
end

-- change does so once for each mark, or each hold. What a hold that has ended gave back is
-- charged anew.
local function change(k, v)
  local held, anew = ARGV[4], nil
  if held then
    if call('ZREM', KEYS[2], held) == 0 then
      if call('ZREM', KEYS[2], ENDED .. held) == 0 then return v end
      anew = ARGV[5] + 0
    end
  elseif named and named ~= '' and not call('SET', KEYS[2], '', 'NX', 'EXAT', now + MARK_LASTS) then
    return v
  end
  read_open(k)
  change_subject(anew)
  return store()
end
operations.a, operations.r = change, change

-- A hold that has ended stays so.
function operations.h(_, v)
  local score = now + byte(arg, 2) * 256 + byte(arg, 3) + 1
  call('ZADD', KEYS[2], 'XX', score, named)
  call('EXPIREAT', KEYS[2], score + MARK_LASTS, 'GT')
  return v
end

-- end_holds gives back what expired holds of subject k have charged: a thousand of them at most.
-- Peeks are answered also if nothing can be written.
local function end_holds(k)
  if not ours(k) then return end
  local holds, before = KEYS[#KEYS - subjects + k], op
  local removed = (takes and call or redis.pcall)('ZREMRANGEBYSCORE', holds, FORGET, FORGET + now)
  if type(removed) == 'table' then return end -- an error
  read_open(k)
  op = 'r'
  for _ = 1, 1000 do
    local first = call('ZREVRANGE', holds, -1, -1, 'WITHSCORES')
    if not first[1] or first[2] + 0 > now then break end
    arg = first[1]
    change_subject()
    local last = now + MARK_LASTS
    for p = 20, 12 + 8 * byte(arg, 15), 8 do last = max(last, number(arg, p)) end
    call('ZADD', holds, FORGET + last, ENDED .. arg)
    call('ZREM', holds, arg) -- not the last one: while a slot moves, a key that is gone is an error
  end
  store()
  arg, op = ARGV[1], before
end

-- A lease first gives back what is left of another one, unless the subject was reset or lost
-- since. Then it is a take of one request, if it makes one, and of a share. If that is
-- refused, so are the requests before. The share and the generation follow the value.
local function lease(k)
  local more, refused, makes = eight(counts, 1), byte(counts, 9) * 256 + byte(counts, 10), byte(counts, 11)
  local generation, leased = noted()
  if #counts > 11 and number(counts, 12) == generation then
    arg, op, named = sub(counts, 16), 'r', ''
    change(k)
    arg, op, named = ARGV[1], 'p', ARGV[3]
  else
    read_open(k)
    store() -- what has ended is forgotten, as by change
  end
  use_plan(1)
  local fits, own, share = grantable(k, 1), cost * makes, 0
  if fits > 0 then
    share = more
    for q = 1, quotas do
      if not spans[q] then share = min(share, floor((limits[q] - find(lengths[q]).used - own) / 2)) end
    end
    cost, refused = own + share, 0
    if cost == 0 then fits = 0 end
  end
  local letter, limited = charge_and_strike(fits, refused)
  if letter == 'x' then return nil, 'x' end
  local v, last = value()
  if fits > 0 and last > leased then note(generation, last) end
  if fits + refused > 0 then store() end
  local low = share % (MAX_U32 + 1)
  v = v .. four((share - low) / (MAX_U32 + 1)) .. four(low) .. four(generation)
  return v, letter == 'a' and 'a' or letter .. two(0) .. two(limited)
end

function operations.p(k)
  if counts ~= '' then return lease(k) end
  use_plan(1)
  grantable(k, 0)
  return (value())
end

-- A ban by hand keeps the level of the last one. The record outlives it as long as it
-- would have outlived that one: the plan, which says how soon a level is forgiven, is
-- not known here.
function operations.b(k)
  read(k)
  if subject.expires <= now then clear() end
  local before = subject.ban_ends
  local afterlife = subject.expires - before
  ban(number(arg, 2), number(arg, 6))
  if byte(arg, 10) then
    subject.ban_length, subject.reason = subject.ban_length + BY_HAND, sub(arg, 11)
    if subject.reason ~= '' then subject.reason = '\255' .. char(#subject.reason) .. subject.reason end
  end
  if subject.level > 0 then subject.expires = max(subject.expires, subject.ban_ends + afterlife) end
  return store()
end

-- The ban ends before its subject leaves the index, so that an error in between (a
-- right was taken away) leaves no ban that is not listed. Before both the index is
-- read: if it is not a sorted set, that is an error before anything is done. A reset forgets
-- the windows too, and begins the next generation if the present one matters.
function operations.u(k, v)
  call('ZREVRANGE', KEYS[2], 0, 0)
  read(k)
  clear()
  if op == 'x' then
    local generation, last = noted()
    returns = {}
    if last > 0 then note((generation + 1) % (MAX_U32 + 1), last) else call('DEL', KEYS[#KEYS]) end
    subject.windows = {}
  end
  store()
  call('ZREM', KEYS[2], named)
  return v
end
operations.x = operations.u

function operations.s(_, v) return v end

for _, k in ipairs(due or {}) do end_holds(k) end
for _, o in ipairs(others or {}) do out[o[1]] = decide(o[2], o[3], o[4]) end
for k = 1, takes and 0 or subjects do
  local v, front = nil, 'e'
  if ours(k) then v, front = operations[op](k, values[k] or '') end
  out[#out + 1] = v and answer(front or 'a', v) or front
end
return table.concat(out)
