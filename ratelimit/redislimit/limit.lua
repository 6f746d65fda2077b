-- Does one operation on each of some subjects, all of them in one atomic step.
--
-- KEYS     One key for each subject, no two of them equal. If ARGV[3] is given there is one subject,
--          and a second key: the index of bans, or of a charge its mark.
-- ARGV[1]  The operation, one letter, and what it needs, in binary:
--            t  take   cost 4, quotas 1, for each quota window 4 (seconds) and
--                      limit 4, the shortest window first; then the penalty:
--                      strikes 2, grace 4 (milliseconds), ban 4, growth 1,
--                      max 4, forgive 4 (seconds)
--            p  peek   the same
--            r  refund the same, and in place of the penalty for each quota the end
--                      of the window that was charged 4
--            c  charge the same, and in place of the penalty the second in which
--                      the charge was made 4, and for each quota the units to
--                      add 4; the cost is not used
--            b  ban    whole seconds 4, and nanoseconds 4
--            l  lift
--            x  reset
--            s  show
-- ARGV[2]  For a take or a refund: how many requests each subject makes, 2 each.
--          Empty: one.
-- ARGV[3]  For a ban, a lift, a reset, and a take that was answered "i": the
--          name of the subject in the index. For a charge: not empty.
--
-- The reply is the server's time, seconds and microseconds in decimal with a
-- space after each, and for each subject a letter and what comes with it:
--   a  done; of a take: every request was granted          then a value
--   d  granted 2, limited 2, the others were banned        then a value
--   g  the same, and the limited ones were spared a strike then a value
--   i  nothing was done: it would start a ban, and the index was not given
--   e  nothing was done: the key holds something else
-- where a value is its length 1, and the subject's value as it stands now; for
-- a lift, as it stood before.
--
-- A subject's value holds the n windows in which something was used, the shortest
-- first: n times length 4 and end 4, then n times used 4. After them, if it was
-- limited, its record: first 6 (Unix milliseconds), strikes 2, level 1, ends 4,
-- length 4, expires 4.
--
-- Numbers in binary are big-endian and have no sign. Times are Unix seconds
-- where nothing else is said; 32 bits of them last until 2106.
--
-- Lua's numbers are doubles, which are exact up to 2^53. The largest here are
-- milliseconds since 1970 (2^41) and requests times cost (2^16 times 2^32). All
-- are whole, since every division is exact or rounded down. They become decimal
-- digits only as arguments of Redis commands, and are seconds there; tostring,
-- which keeps 14 digits, is not used.

local call, byte, char, sub = redis.call, string.byte, string.char, string.sub

local AFTERLIFE = 5 -- seconds that a key outlives what it says

local arg, counts, name = ARGV[1], ARGV[2] or '', ARGV[3]
local time = call('TIME')
local now = time[1] + 0

-- Of a take, the plan: the limits, how a value begins whose windows are all open
-- now, and the last of their ends. This and admit are on the way of every request,
-- and are written for the interpreter, which spends more time here than Redis does
-- on reading and writing the keys: few calls, few tables, and few variables that a
-- function has to capture.
local take, quotas, cost, last_end = sub(arg, 1, 1) == 't', 0, 1, 0
local limits, heads = {}, ''
if take then
  local a, b, c, d, e, f, g, h = byte(arg, 2, 6)
  cost, quotas = ((a * 256 + b) * 256 + c) * 256 + d, e
  for q = 1, quotas do
    a, b, c, d, e, f, g, h = byte(arg, 8 * q - 1, 8 * q + 6)
    limits[q] = ((e * 256 + f) * 256 + g) * 256 + h
    local length = ((a * 256 + b) * 256 + c) * 256 + d
    local ending = now - now % length + length
    if ending > last_end then last_end = ending end
    h = ending % 256
    ending = (ending - h) / 256
    g = ending % 256
    ending = (ending - g) / 256
    f = ending % 256
    heads = heads .. char(a, b, c, d, (ending - f) / 256, f, g, h)
  end
end

-- admit is the common case of a take, in which there is little to do but count:
-- the subject is new, or its windows are those of the plan or have ended, all
-- requests fit, there is no record, and the clock has not stepped back. It returns
-- the new value and whether all windows were open before; or nil, and then it is
-- another case.
local function admit(v, units, now, quotas, heads, limits)
  local open, fresh = sub(v, 1, 8 * quotas) == heads, heads
  if open and quotas == 2 then -- with nothing to carry: the same as below, in fewer calls
    local a, b, c, d, e, f, g, h = byte(v, 17, 24)
    d, h = d + units, h + units
    if d < 256 and h < 256 and ((a * 256 + b) * 256 + c) * 256 + d <= limits[1] and
      ((e * 256 + f) * 256 + g) * 256 + h <= limits[2] then
      return heads .. char(a, b, c, d, e, f, g, h), true
    end
  end
  for q = 1, quotas do
    local a, b, c, d = 0, 0, 0, units
    if v ~= '' then
      local p = 8 * q
      if open or sub(v, p - 7, p) == sub(heads, p - 7, p) then
        p = 8 * quotas + 4 * q
        a, b, c, d = byte(v, p - 3, p)
        d = d + units
      else
        local e, f, g, h = byte(v, p - 3, p)
        if ((e * 256 + f) * 256 + g) * 256 + h > now then
          return nil -- another window, or one in the future; one that has ended makes room
        end
      end
    end
    local sum = ((a * 256 + b) * 256 + c) * 256 + d
    if sum > limits[q] then return nil end
    if d > 255 then
      d = sum % 256
      sum = (sum - d) / 256
      c = sum % 256
      sum = (sum - c) / 256
      b = sum % 256
      a = (sum - b) / 256
    end
    fresh = fresh .. char(a, b, c, d)
  end
  return fresh, open
end

-- uncommon returns the function that does everything else: it takes a key, its
-- value and a number of requests, and returns the answer. What it needs is made
-- here, and not on the way of the common case.
local function uncommon(arg, name, now, micros)
  local floor, max, min, insert, remove = math.floor, math.max, math.min, table.insert, table.remove
  local WINDOW, RECORD = 12, 21 -- bytes
  local MAX_WINDOWS = 8        -- of one subject
  local MAX_U32 = 4294967295
  local INDEX_AFTERLIFE = 3600 -- seconds that an ended ban stays in the index
  local MARK_LASTS = 60        -- seconds in which a charge is not made twice

  local function four(x)
    local d = x % 256
    x = (x - d) / 256
    local c = x % 256
    x = (x - c) / 256
    local b = x % 256
    return char((x - b) / 256, b, c, d)
  end

  local function number(s, i)
    local a, b, c, d = byte(s, i, i + 3)
    return ((a * 256 + b) * 256 + c) * 256 + d
  end

  local function two(x)
    return char(floor(x / 256), x % 256)
  end

  -- The plan.
  local op, cost, quotas, windows, limits = sub(arg, 1, 1), 0, 0, {}, {}
  if op == 't' or op == 'p' or op == 'r' or op == 'c' then
    cost, quotas = number(arg, 2), byte(arg, 6)
    for q = 1, quotas do
      windows[q], limits[q] = number(arg, 8 * q - 1), number(arg, 8 * q + 3)
    end
  end
  local rest = 7 + 8 * quotas -- where in arg the plan's quotas end

  -- window_end returns the end of the window that the second t is in.
  local function window_end(t, length)
    return t - t % length + length
  end

  -- after returns the time so many nanoseconds from now, rounded up.
  local function after(nanos)
    return now - floor(-(micros * 1000 + nanos) / 1000000000)
  end

  -- The account of the subject at hand: n windows in order of their lengths.
  local n, lengths, ends, used

  local function open(i, length, ending, units)
    insert(lengths, i, length)
    insert(ends, i, ending)
    insert(used, i, units)
    n = n + 1
  end

  -- find returns where the window of the given length is, or belongs, and
  -- whether it is there.
  local function find(length)
    local i = 1
    while i <= n and lengths[i] < length do i = i + 1 end
    return i, i <= n and lengths[i] == length
  end

  -- close makes room: it drops the window that ends first of those not in the
  -- plan; of two that end together, the shorter one.
  local function close()
    local first
    for i = 1, n do
      local ours = false
      for q = 1, quotas do ours = ours or windows[q] == lengths[i] end
      if not ours and (not first or ends[i] < ends[first]) then first = i end
    end
    remove(lengths, first)
    remove(ends, first)
    remove(used, first)
    n = n - 1
  end

  -- record_at returns where the record in v is, or would be.
  local function record_at(v)
    return #v % WINDOW == 0 and #v + 1 or #v - RECORD + 1
  end

  -- read reads the windows of v. Those that ended by the second since are left
  -- out, and the others end no later than latest, if given, says of their lengths.
  local function read(v, since, latest)
    n, lengths, ends, used = 0, {}, {}, {}
    local many = (record_at(v) - 1) / WINDOW
    for i = 1, many do
      local length, ending = number(v, 8 * i - 7), number(v, 8 * i - 3)
      if latest then ending = min(ending, latest(length)) end
      if ending > since then open(n + 1, length, ending, number(v, 8 * many + 4 * i - 3)) end
    end
  end

  -- roll reads the windows of v and brings them to the present: those that have
  -- ended are dropped, and those of the plan that are missing begin. After the
  -- clock stepped back windows lie in the future. They go on, so that no quota
  -- is granted twice; but none is left more than one window ahead.
  local function roll(v)
    read(v, now, function(length) return window_end(now, length) + length end)
    for q = 1, quotas do
      local i, there = find(windows[q])
      if not there then
        if n == MAX_WINDOWS then
          close()
          i = find(windows[q])
        end
        open(i, windows[q], window_end(now, windows[q]), 0)
      end
    end
  end

  -- left returns what is left of quota q, and when its window ends.
  local function left(q)
    local i = find(windows[q])
    return max(limits[q] - used[i], 0), ends[i]
  end

  -- The record of the subject at hand: when the first request in a window was
  -- limited, the strikes, and of the last ban the level, the end, and the
  -- length, which is 0 once a request was admitted after it. Nothing of it
  -- counts once it has expired.
  local first, strikes, level, ban_ends, length, expires

  local function clear()
    first, strikes, level, ban_ends, length, expires = 0, 0, 0, 0, 0, 0
  end

  local function read_record(v)
    clear()
    local p = record_at(v)
    if p > #v then return end
    first = number(v, p) * 65536 + byte(v, p + 4) * 256 + byte(v, p + 5)
    strikes = byte(v, p + 6) * 256 + byte(v, p + 7)
    level = byte(v, p + 8)
    ban_ends, length, expires = number(v, p + 9), number(v, p + 13), number(v, p + 17)
  end

  local function expire()
    if expires <= now then clear() end
  end

  local function banned()
    return length > 0 and ban_ends > now
  end

  -- ban starts a ban, and ends any other. The index is where to look for bans;
  -- whether they are in force, the subjects' values say.
  local function ban(seconds, nanos)
    first, strikes = 0, 0
    ban_ends = after(nanos) + seconds
    length = ban_ends - now
    expires = max(expires, ban_ends)
    local index = KEYS[2]
    call('ZREMRANGEBYSCORE', index, '-inf', now - INDEX_AFTERLIFE)
    call('ZADD', index, ban_ends, name)
    local last = call('ZREVRANGE', index, 0, 0, 'WITHSCORES')[2]
    call('EXPIREAT', index, last + INDEX_AFTERLIFE)
  end

  -- punish starts the ban that is due after the last one.
  local function punish()
    local base, growth = number(arg, rest + 6), byte(arg, rest + 10)
    local longest, forgive = number(arg, rest + 11), number(arg, rest + 15)
    if now > ban_ends then level = max(level - floor((now - ban_ends) / forgive), 0) end
    level = min(level + 1, 255)
    for _ = 2, level do
      if growth == 1 or base >= longest then break end
      base = base * growth
    end
    ban(min(base, longest), 0)
    expires = max(expires, ban_ends + level * forgive)
  end

  -- strike enters so many requests that are limited at this instant into the
  -- record. It returns how many were limited before a ban began, and whether
  -- they were spared; or nil if a ban would begin and there is no index.
  local function strike(requests)
    local endured, grace = byte(arg, rest) * 256 + byte(arg, rest + 1), number(arg, rest + 2)
    if endured == 0 then return requests, true end
    for i = 1, n do expires = max(expires, ends[i]) end
    local start, last = 0, 0
    for q = 1, quotas do
      local units, ending = left(q)
      if units < cost and ending > last then start, last = ending - windows[q], ending end
    end
    local ms = now * 1000 + floor(micros / 1000)
    if first < start * 1000 or first > ms then first = ms end
    if first >= start * 1000 and ms - first < grace then return requests, true end
    local limited = min(max(endured - strikes, 0), requests)
    strikes = strikes + limited
    if limited < requests then
      if not name then return nil end
      punish()
    end
    return limited, false
  end

  -- store writes the account and the record, if they are not as before. Windows
  -- in which nothing was used are left out.
  local function store(key, before)
    local v, counters, last = '', '', 0
    for i = 1, n do
      if used[i] > 0 then
        v = v .. four(lengths[i]) .. four(ends[i])
        counters = counters .. four(used[i])
        last = max(last, ends[i])
      end
    end
    v = v .. counters
    if first > 0 or strikes > 0 or level > 0 or ban_ends > 0 then
      expires = min(expires, MAX_U32)
      last = max(last, expires)
      v = v .. four(floor(first / 65536)) .. two(first % 65536) .. two(strikes) .. char(level) ..
        four(ban_ends) .. four(length) .. four(expires)
    end
    if key and v ~= before then
      if v == '' then
        call('DEL', key)
      else
        call('SET', key, v, 'EXAT', last + AFTERLIFE)
      end
    end
    return v
  end

  local function answer(letter, v)
    return letter .. char(#v) .. v
  end

  local operations = {}

  -- Requests of one subject are decided as if they had come one after the other
  -- at this instant: some are granted, then some limited, and the rest banned.
  function operations.t(key, v, requests)
    roll(v)
    read_record(v)
    expire()
    if banned() then return answer('d' .. two(0) .. two(0), store(key, v)) end
    local granted = requests
    for q = 1, quotas do granted = min(granted, floor(left(q) / cost)) end
    if granted > 0 then
      for i = 1, n do used[i] = min(used[i] + granted * cost, MAX_U32) end
      strikes, length = 0, 0
    end
    if granted == requests then return answer('a', store(key, v)) end
    local limited, spared = strike(requests - granted)
    if not limited then return 'i' end
    return answer((spared and 'g' or 'd') .. two(granted) .. two(limited), store(key, v))
  end

  function operations.p(key, v)
    roll(v)
    read_record(v)
    expire()
    return answer('a', store(nil, v))
  end

  function operations.r(key, v, requests)
    roll(v)
    read_record(v)
    for q = 1, quotas do
      local i = find(windows[q])
      if ends[i] == number(arg, rest + 4 * q - 4) then used[i] = used[i] - cost * requests end
    end
    return answer('a', store(key, v))
  end

  -- What was admitted elsewhere is added whether or not it fits, unless its mark
  -- says that it was.
  function operations.c(key, v)
    local admitted = number(arg, rest)
    if not call('SET', KEYS[2], '', 'NX', 'EX', MARK_LASTS) then return answer('a', v) end
    roll(v)
    read_record(v)
    for q = 1, quotas do
      local i = find(windows[q])
      if window_end(admitted, windows[q]) == ends[i] then
        used[i] = min(used[i] + number(arg, rest + 4 * q), MAX_U32)
      end
    end
    return answer('a', store(key, v))
  end

  function operations.b(key, v)
    read(v, 0)
    read_record(v)
    expire()
    ban(number(arg, 2), number(arg, 6))
    return answer('a', store(key, v))
  end

  function operations.l(key, v)
    read(v, 0)
    clear()
    call('ZREM', KEYS[2], name)
    store(key, v)
    return answer('a', v)
  end

  function operations.x(key, v)
    call('ZREM', KEYS[2], name)
    call('DEL', key)
    return answer('a', '')
  end

  function operations.s(key, v)
    return answer('a', v)
  end

  return function(key, v, requests)
    local windows_size = record_at(v) - 1
    if op ~= 'x' and (windows_size < 0 or windows_size % WINDOW > 0 or windows_size > MAX_WINDOWS * WINDOW) then
      return 'e'
    end
    return operations[op](key, v, requests)
  end
end

local subjects = name and 1 or #KEYS
local values = call('MGET', unpack(KEYS, 1, subjects))
local size = 12 * quotas
local granted = 'a' .. char(size)
local out, last = {time[1], ' ', time[2], ' '}, 4
local settle
for s = 1, subjects do
  local key, v, requests = KEYS[s], values[s] or '', 1
  if counts ~= '' then
    local a, b = byte(counts, 2 * s - 1, 2 * s)
    requests = a * 256 + b
  end
  local fresh, open
  if take and (v == '' or #v == size) then
    fresh, open = admit(v, requests * cost, now, quotas, heads, limits)
  end
  if fresh then
    if open then
      call('SET', key, fresh, 'KEEPTTL')
    else
      call('SET', key, fresh, 'EXAT', last_end + AFTERLIFE)
    end
    out[last + 1], out[last + 2], last = granted, fresh, last + 2
  else
    settle = settle or uncommon(arg, name, now, time[2] + 0)
    out[last + 1], last = settle(key, v, requests), last + 1
  end
end
return table.concat(out)
