-- Does one operation on each of some subjects, all of them in one atomic step.
--
-- KEYS     One key for each subject; no two are equal. If ARGV[3] is given, there
--          is one subject, and a second key: the index of bans, or the mark of a
--          change that is made once.
-- ARGV[1]  The operation, one letter, and what it needs, in binary:
--            t  take       cost 4, quotas 1, for each quota window 4 (seconds) and
--                          limit 4, the shortest window first; then the penalty:
--                          strikes 2, grace 4 (milliseconds), decay 4, ban 4,
--                          growth 1, max 4, forgive 4 (seconds); then for each
--                          calendar quota five boundaries 4; then for each
--                          smooth quota three spans of time 8: until cost, the
--                          limit, and the burst are back
--            T  take       the same, if a quota is smooth; smooth.lua decides most of these
--            p  peek       the same
--            a  add        units 4, quotas 1, for each quota window 4 and the end of
--                          the window that was charged 4, 0 if none was; then the second
--                          of the charge 4, the number of the other windows that were
--                          charged 1, and window 4 and end 4 of each; then for each
--                          smooth quota three times 8: how long the units and the limit
--                          take to come back, and until when a bucket without other
--                          charges owes some of this one
--            r  give back  the same
--            b  ban        whole seconds 4, and nanoseconds 4
--            u  unban
--            x  reset
--            s  show
-- ARGV[2]  For a take: how many requests each subject makes, 2 each. Empty: one.
-- ARGV[3]  For a ban, an unban, a reset, and a take that was answered "i": the
--          name of the subject in the index. For a change that is marked: not empty.
--          For a take that cannot have the index: empty; it then starts no ban.
--
-- The reply is the server's time, seconds and microseconds in decimal with a
-- space after each, and for each subject a letter and what comes with it:
--   a  done; of a take: every request was granted           then a value
--   d  granted 2, limited 2, the others were banned; the    then a value
--      limited ones were strikes
--   g  the same, and the limited ones were no strikes       then a value
--   b  the same as d, and the first of those that were      then a value
--      banned started the ban: there is one
--   h  granted 2, limited 2, which were strikes; the others then a value
--      were limited too, as the ban is due that cannot start
--   i  nothing was done: it would start a ban, and the index was not given
--   c  nothing was done: the boundaries are not those around the server's time
--   e  nothing was done: the key holds a value of something else
-- where a value is its length 1, and the subject's value as it is now; of an
-- unban, as it was before.
--
-- A subject's value has the windows that have begun: something was charged to them, also
-- if it was given back. The shortest comes first. Then comes a record, if the subject was
-- limited or banned. Of two windows:
--
--   0        4     8        12    16     20     24                            45
--   | length | end | length | end | used | used | record                      |
--
--   24      30        32      33     37      41        45
--   | first | strikes | level | ends | since | expires |
--
--   first    Unix milliseconds of the first limited request in its window
--   level    of the last ban
--   ends     of the last ban
--   since    the time from which the strikes decay; without strikes the length
--            of the last ban, 0 once a request was admitted after it
--   expires  the time from which the record does not count
--
-- A calendar quota, which is by month or by day in a time zone, has a length that
-- stands in for those of its windows: DAY or MONTH. Where they begin and end is sent
-- with the operation: five times at which one ends and the next begins. The server's
-- time must lie in one of the first three of these four windows. An open window keeps
-- its end, whatever calendar it opened by.
--
-- A smooth quota has the length 2^31 more than its window, and comes last. Its state is
-- the time at which its bucket is full. In place of the end is that time in seconds,
-- rounded up, and in place of what is used, by how many 2^-32 seconds. Times and spans
-- of smooth quotas are two numbers, seconds and 2^-32 seconds. The sums, and the reasons,
-- are those of package gcra.
--
-- Binary numbers are big-endian and unsigned. Times are Unix seconds where nothing
-- else is said; 32 bits of them last until 2106.
--
-- Lua's numbers are doubles, exact up to 2^53. The largest here are milliseconds
-- since 1970 (2^41), requests times cost (2^16 times 2^32), and microseconds of a
-- second times 2^32 (2^52). All are whole: every
-- division is exact or rounded down. They become decimal digits only as arguments of
-- Redis commands, and are seconds there; tostring, which keeps 14 digits, is not
-- used.
--
-- Part one decides the takes of which there are many, admitted or not, and returns
-- if there are no others. Redis runs the whole script for each call, and making a
-- function takes the interpreter as long as counting a request does. So part one is
-- one loop without functions. It leaves to part two whatever it does not decide,
-- which costs time and changes no answer. Part two is written for the reader.
--
-- The parts in braces are parts of smooth.lua and group.lua too.

local call, byte, char, sub = redis.call, string.byte, string.char, string.sub

local AFTERLIFE = 5 -- seconds that a key outlives what it holds
local DAY, MONTH = 172801, 2764801

local arg, counts, name = ARGV[1], ARGV[2] or '', ARGV[3]
local time = call('TIME')
local now = time[1] + 0

local subjects = name and 1 or #KEYS
local values = call('MGET', unpack(KEYS, 1, subjects)) -- false: no string
local out = {time[1], ' ', time[2], ' '} -- and two strings for each subject
local others, last_other = nil, 0 -- subjects that are left to the second part

-- Part one: takes.

-- The plan: its limits, its open windows as a value has them in front of their
-- usage, and the last of their ends.
local take, cost, quotas, last_end = sub(arg, 1, 1) == 't' and not name, 1, 0, 0
local limits, heads = {0, 0, 0, 0}, ''
local apart, starts -- the boundaries are not around now; when calendar windows began, by quota
if take then
  local a, b, c, d, e, f, g, h = byte(arg, 2, 6)
  cost, quotas = ((a * 256 + b) * 256 + c) * 256 + d, e
  local boundaries = 30 + 8 * quotas -- where those of the next calendar quota are, if there are any
  if #arg >= boundaries then starts = {} end
  for q = 1, quotas do
    a, b, c, d, e, f, g, h = byte(arg, 8 * q - 1, 8 * q + 6)
    limits[q] = ((e * 256 + f) * 256 + g) * 256 + h
    local length = ((a * 256 + b) * 256 + c) * 256 + d
    local ending = now - now % length + length
    if starts and (length == DAY or length == MONTH) then
      local start
      ending, apart = 0, true
      for i = boundaries, boundaries + 12, 4 do
        e, f, g, h = byte(arg, i, i + 3)
        start, ending = ending, ((e * 256 + f) * 256 + g) * 256 + h
        if now < ending then
          apart = i == boundaries
          break
        end
      end
      if apart then break end
      starts[q], boundaries = start, boundaries + 20
    end
    if ending > last_end then last_end = ending end
    h = ending % 256
    ending = (ending - h) / 256
    g = ending % 256
    ending = (ending - g) / 256
    f = ending % 256
    heads = heads .. char(a, b, c, d, (ending - f) / 256, f, g, h)
  end
end
local all_granted = 'a' .. char(12 * quotas)
local uses = {0, 0, 0, 0} -- of the subject in the loop, in the windows of the plan

-- What only denials need, made by the first one: the penalty, the time in
-- milliseconds, what turns a number into four bytes, and the bytes of the times.
local allowance, grace, decay, ms, four, ms_bytes, now_bytes, last_end_bytes

for s = 1, apart and 0 or subjects do
  local key, v, requests = KEYS[s], values[s] or '', 1
  local letter, fresh -- the answer, and the new value; nil: left to part two
  if take and counts ~= '' then
    local a, b = byte(counts, 2 * s - 1, 2 * s)
    requests = a * 256 + b
  end
  -- Where the record is, or would be, how many windows are before it, and whether
  -- these are the open windows of the plan.
  local units, size = requests * cost, #v
  local record = size % 12 == 9 and size - 20 or size + 1
  local n = (record - 1) / 12
  local open = take and n == quotas and sub(v, 1, 8 * n) == heads

  -- The most common case: two windows, no record, and room.
  if open and n == 2 and size == 24 then
    local a, b, c, d, e, f, g, h = byte(v, 17, 24)
    d, h = d + units, h + units
    if d < 256 and h < 256 and ((a * 256 + b) * 256 + c) * 256 + d <= limits[1] and
      ((e * 256 + f) * 256 + g) * 256 + h <= limits[2] then
      letter, fresh = all_granted, heads .. char(a, b, c, d, e, f, g, h)
      call('SET', key, fresh, 'KEEPTTL')
    end
  end

  -- All other common cases: each window of the subject is one of the plan, and
  -- either open or ended.
  if take and not fresh and n <= quotas and n % 1 == 0 and values[s] ~= '' then
    local w, fits, ended = 1, true, false -- w: the window that comes next
    local refusing, start = 0, 0          -- end and start of the window that refuses
    for q = 1, quotas do
      local used = 0
      if open or w <= n and sub(v, 8 * w - 7, 8 * w) == sub(heads, 8 * q - 7, 8 * q) then
        local a, b, c, d = byte(v, 8 * n + 4 * w - 3, 8 * n + 4 * w)
        used = ((a * 256 + b) * 256 + c) * 256 + d
        w = w + 1
      elseif w <= n and sub(v, 8 * w - 7, 8 * w - 4) == sub(heads, 8 * q - 7, 8 * q - 4) then
        local a, b, c, d = byte(v, 8 * w - 3, 8 * w)
        if ((a * 256 + b) * 256 + c) * 256 + d <= now then w, ended = w + 1, true end
      end -- w stays at a window of another plan, or in the future
      uses[q] = used
      local left = limits[q] - used
      if left < units then
        fits = false
        if left < cost then
          local a, b, c, d, e, f, g, h = byte(heads, 8 * q - 7, 8 * q)
          local ending = ((e * 256 + f) * 256 + g) * 256 + h
          if ending > refusing then
            refusing, start = ending, starts and starts[q] or ending - (((a * 256 + b) * 256 + c) * 256 + d)
          end
        end
      end
    end

    if w == n + 1 then
      --{ read the record
      -- The record: first f, strikes s, ends e, since i, and expires x.
      local strikes, since, ban_ends, expires = 0, 0, 0, 0
      local f1, f2, f3, f4, f5, f6, s1, s2, _, e1, e2, e3, e4, i1, i2, i3, i4, x1, x2, x3, x4
      if record <= size then
        f1, f2, f3, f4, f5, f6, s1, s2, _, e1, e2, e3, e4, i1, i2, i3, i4, x1, x2, x3, x4 = byte(v, record, size)
        expires = ((x1 * 256 + x2) * 256 + x3) * 256 + x4
        if expires > now then
          strikes = s1 * 256 + s2
          ban_ends = ((e1 * 256 + e2) * 256 + e3) * 256 + e4
          since = ((i1 * 256 + i2) * 256 + i3) * 256 + i4
        else
          expires = 0 -- as if there was no record
        end
      end
      --}

      if strikes == 0 and since > 0 and ban_ends > now then -- since: the length
        if not ended and ban_ends <= now + since then
          letter, fresh = 'd\0\0\0\0' .. char(size), v
        end

      elseif fits then
        fresh = heads
        for q = 1, quotas do
          local sum = uses[q] + units
          local d = sum % 256
          sum = (sum - d) / 256
          local c = sum % 256
          sum = (sum - c) / 256
          local b = sum % 256
          fresh = fresh .. char((sum - b) / 256, b, c, d)
        end
        --{ keep the record
        if strikes > 0 or since > 0 then
          fresh = fresh .. sub(v, record, record + 5) .. '\0\0' .. sub(v, record + 8, record + 12) ..
            '\0\0\0\0' .. sub(v, record + 17)
        elseif expires > 0 then
          fresh = fresh .. sub(v, record)
        end
        letter = 'a' .. char(#fresh)
        --}
        if open then
          call('SET', key, fresh, 'KEEPTTL')
        elseif v ~= '' then
          call('SET', key, fresh, 'EXAT', (expires > last_end and expires or last_end) + AFTERLIFE)
        --{ a new key
        else -- the key may hold something that is not a string: GET makes that an error
          local old = redis.pcall('SET', key, fresh, 'EXAT', last_end + AFTERLIFE, 'GET')
          if old and sub(old.err, 1, 9) ~= 'WRONGTYPE' then return old end
          if old then letter, fresh = 'e', '' end
        end
        --}

      elseif refusing > 0 and not ended then -- every request is refused
        --{ refuse
        --{ strike
        if not allowance then
          local at = 7 + 8 * quotas
          local a, b, c, d, e, f, g, h, i, j = byte(arg, at, at + 9)
          allowance = a * 256 + b
          grace = ((c * 256 + d) * 256 + e) * 256 + f
          decay = ((g * 256 + h) * 256 + i) * 256 + j
          ms = time[2] / 1000
          ms = now * 1000 + ms - ms % 1
          four = function(x)
            local d = x % 256
            x = (x - d) / 256
            local c = x % 256
            x = (x - c) / 256
            local b = x % 256
            return char((x - b) / 256, b, c, d)
          end
          now_bytes, last_end_bytes = four(now), four(last_end)
          ms_bytes = four((ms - ms % 65536) / 65536) .. char((ms % 65536 - ms % 256) / 256, ms % 256)
        end
        letter = 'g'
        if allowance == 0 then
          fresh = (record > size or expires > 0) and v or sub(v, 1, record - 1)
        else
          local first = 0
          if expires > 0 then
            first = ((((f1 * 256 + f2) * 256 + f3) * 256 + f4) * 256 + f5) * 256 + f6
          end
          local begins = first < start * 1000 or first > ms
          if begins then first = ms end
          local since_bytes -- nil: as before
          if ms - first >= grace then
            letter = 'd'
            if strikes > 0 and (since > now or since <= now - decay) then -- otherwise nothing changes
              if since > now then since = now end -- the clock stepped back
              local forgotten = (now - since) / decay
              forgotten = forgotten - forgotten % 1
              strikes, since_bytes = strikes - forgotten, four(since + forgotten * decay)
            end
            if strikes <= 0 then strikes, since_bytes = 0, now_bytes end
            strikes = strikes + requests
          end
          if strikes <= allowance then -- no ban starts
            local strikes_bytes = char((strikes - strikes % 256) / 256, strikes % 256)
            if expires == 0 then
              fresh = sub(v, 1, record - 1) .. ms_bytes .. strikes_bytes .. '\0\0\0\0\0' ..
                (since_bytes or '\0\0\0\0') .. last_end_bytes
            elseif not begins and not since_bytes and expires >= last_end then -- faster than the next branch
              fresh = sub(v, 1, record + 5) .. strikes_bytes .. sub(v, record + 8)
            else
              fresh = sub(v, 1, record - 1) .. (begins and ms_bytes or sub(v, record, record + 5)) ..
                strikes_bytes .. sub(v, record + 8, record + 12) .. (since_bytes or sub(v, record + 13, record + 16)) ..
                (expires < last_end and last_end_bytes or sub(v, record + 17))
            end
          end
        end
        if fresh then
          letter = letter .. char(0, 0, (requests - requests % 256) / 256, requests % 256, #fresh)
        end
        --}
        if fresh and fresh ~= v then
          if open or expires >= last_end then
            call('SET', key, fresh, 'KEEPTTL')
          else
            call('SET', key, fresh, 'EXAT', last_end + AFTERLIFE)
          end
        end
        --}
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

-- Part two: everything else.

--{ everything else
--{ functions
local floor, max, min, insert, remove = math.floor, math.max, math.min, table.insert, table.remove
local WINDOW, RECORD = 12, 21 -- bytes
local MAX_WINDOWS = 8        -- of one subject
local MAX_U32 = 4294967295
local INDEX_AFTERLIFE = 3600 -- seconds that an ended ban stays in the index
local MARK_LASTS = 60        -- seconds that a mark lasts at least
local CLOCKS_APART = 86400   -- seconds that a charge may come from the future, to be changed once
local SMOOTH = 2147483648    -- what the length of a smooth quota is more than its window
local SECOND = 4294967296    -- of 2^-32 seconds

local micros = time[2] + 0

function four(x)
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

-- The plan, and the boundaries of its calendar windows.
local op, windows, boundaries = sub(arg, 1, 1), {}, {}
if op == 'T' then op = 't' end
if op == 't' or op == 'p' or op == 'r' or op == 'a' then
  cost, quotas = number(arg, 2), byte(arg, 6)
  for q = 1, quotas do
    windows[q], limits[q] = number(arg, 8 * q - 1), number(arg, 8 * q + 3)
  end
end
local rest = 7 + 8 * quotas -- where in arg the plan's quotas end

local function is_calendar(length)
  return length == DAY or length == MONTH
end

-- read_boundaries reads those of the calendar windows that follow in arg at p. It reports
-- whether the server's time lies in the first three windows of each.
local spans_at -- where in arg the spans of smooth quotas are
local function read_boundaries(p)
  boundaries, spans_at = {}, p
  for q = 1, quotas do
    if is_calendar(windows[q]) then
      local five = {}
      for i = 1, 5 do five[i] = number(arg, p + 4 * i - 4) end
      boundaries[q], p = five, p + 20
      spans_at = p
      if now < five[1] or now >= five[4] then return false end
    end
  end
  return true
end

-- fixed_end returns the end of the window of a fixed length that the second t is in.
local function fixed_end(t, length)
  return t - t % length + length
end

-- open_end returns the end of the window of quota q that is open now.
local function open_end(q)
  if not boundaries[q] then return fixed_end(now, windows[q]) end
  local i = 2
  while boundaries[q][i] <= now do i = i + 1 end
  return boundaries[q][i]
end

-- start_of returns the start of the window of quota q that has the given end. If it
-- opened by another calendar, that is the earliest time that it can have begun.
local function start_of(q, ending)
  if windows[q] >= SMOOTH then return ending - (windows[q] - SMOOTH) - 2 end
  for i = 2, boundaries[q] and 5 or 0 do
    if boundaries[q][i] == ending then return boundaries[q][i - 1] end
  end
  return ending - windows[q]
end

-- after returns the time so many nanoseconds from now, rounded up.
local function after(nanos)
  return now - floor(-(micros * 1000 + nanos) / 1000000000)
end

-- The windows of the subject, n of them, in order of their lengths, and which of them
-- are new: without a charge these do not begin.
local n, lengths, ends, used, opened

local function open(i, length, ending, units, new)
  insert(lengths, i, length)
  insert(ends, i, ending)
  insert(used, i, units)
  insert(opened, i, new)
  n = n + 1
end

-- find returns where the window of the given length is, or belongs, and
-- whether it is there.
local function find(length)
  local i = 1
  while i <= n and lengths[i] < length do i = i + 1 end
  return i, i <= n and lengths[i] == length
end

-- close drops one window to make room: of those that are not in the plan the one
-- that ends first; of two that end together, the shorter one.
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
  remove(opened, first)
  n = n - 1
end

-- record_at returns where the record in v is, or would be.
local function record_at(v)
  return #v % WINDOW == 0 and #v + 1 or #v - RECORD + 1
end

-- Times of smooth quotas.

local fraction = floor(micros * SECOND / 1000000) -- of now

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

local function full_of(ending, rounded)
  if rounded == 0 then return ending, 0 end
  return ending - 1, SECOND - rounded
end

-- full returns when the bucket of window i is full: not before now.
local function full(i)
  local s, f = full_of(ends[i], used[i])
  if later(s, f, now, fraction) then return s, f end
  return now, fraction
end

-- set_full sets it, no later than if the limit of quota q was owed. A full bucket is
-- left out of the value.
local function set_full(i, spans, s, f)
  local most_s, most_f = plus(now, fraction, spans[3], spans[4])
  if later(s, f, most_s, most_f) then s, f = most_s, most_f end
  ends[i], used[i] = 0, 0
  if later(s, f, now, fraction) then
    if f == 0 then ends[i] = s else ends[i], used[i] = s + 1, SECOND - f end
  end
end

-- read_spans returns those of quota q if it is smooth, otherwise nil.
local function read_spans(q)
  local p = spans_at
  if windows[q] < SMOOTH then return nil end
  for before = 1, q - 1 do
    if windows[before] >= SMOOTH then p = p + 24 end
  end
  local six = {}
  for i = 1, 6 do six[i] = number(arg, p + 4 * i - 4) end
  return six
end

-- read reads the windows of v that end after the second since, and the buckets that are
-- not full. If latest is given, windows end no later than latest(length).
local function read(v, since, latest)
  n, lengths, ends, used, opened = 0, {}, {}, {}, {}
  local many = (record_at(v) - 1) / WINDOW
  for i = 1, many do
    local length, ending = number(v, 8 * i - 7), number(v, 8 * i - 3)
    local units, there = number(v, 8 * many + 4 * i - 3), true
    if length < SMOOTH then
      if latest then ending = min(ending, latest(length)) end
      there = ending > since
    elseif since > 0 then
      local s, f = full_of(ending, units)
      there = later(s, f, now, fraction)
    end
    if there then open(n + 1, length, ending, units, false) end
  end
end

-- ahead returns the latest end that a window may have: that of the window after the
-- one that is open now, and of a calendar window two lengths from now.
local function ahead(length)
  if length >= SMOOTH then return now + length - SMOOTH + 2 end
  if is_calendar(length) then return now + 2 * length end
  return fixed_end(now, length) + length
end

-- read_open reads the windows of v that have not ended. After the clock stepped
-- back, windows lie in the future. They go on, so that no quota is granted twice,
-- at most one window ahead.
local function read_open(v)
  read(v, now, ahead)
end

-- make opens a window, and returns where it is.
local function make(length, ending)
  if n == MAX_WINDOWS then close() end
  local i = find(length)
  open(i, length, ending, 0, true)
  return i
end

-- open_plan opens the windows of the plan that are missing.
local function open_plan()
  for q = 1, quotas do
    local i, there = find(windows[q])
    if not there then make(windows[q], windows[q] < SMOOTH and open_end(q) or 0) end
    local spans = read_spans(q)
    if spans then
      i = find(windows[q])
      set_full(i, spans, full(i))
    end
  end
end

-- room returns how many of some requests fit into quota q, the time from which on the
-- next one does, and the end of its window.
local function room(q, requests)
  local i, spans = find(windows[q]), read_spans(q)
  if not spans then return min(floor(max(limits[q] - used[i], 0) / cost), requests), ends[i], 0, ends[i] end
  local s, f = full(i)
  local owed_s, owed_f = minus(s, f, now, fraction)
  local s1, f1 = minus(spans[5], spans[6], owed_s, owed_f)
  local fits = 0
  if s1 >= 0 then
    -- The quotient is about right.
    fits = min(floor((s1 + f1 / SECOND) / (spans[1] + spans[2] / SECOND)), requests)
    local s2, f2 = times(fits, spans[1], spans[2])
    if later(s2, f2, s1, f1) then fits = fits - 1 end
    s2, f2 = times(fits + 1, spans[1], spans[2])
    if fits < requests and not later(s2, f2, s1, f1) then fits = fits + 1 end
  end
  s, f = plus(s, f, spans[1], spans[2])
  s, f = minus(s, f, spans[5], spans[6])
  return fits, s, f, ends[i]
end

-- charge charges requests that fit to all windows, and to the smooth quotas of the plan.
local function charge(requests)
  for i = 1, n do
    if lengths[i] < SMOOTH then used[i] = min(used[i] + requests * cost, MAX_U32) end
  end
  for q = 1, quotas do
    local spans = read_spans(q)
    if spans then
      local i = find(windows[q])
      local s, f = full(i)
      local more_s, more_f = times(requests, spans[1], spans[2])
      set_full(i, spans, plus(s, f, more_s, more_f))
    end
  end
end

-- The record of the subject. With strikes the last ban has no length; without
-- strikes since has no meaning.
local first, strikes, level, ban_ends, since, length, expires

local function clear()
  first, strikes, level, ban_ends, since, length, expires = 0, 0, 0, 0, 0, 0, 0
end

local function read_record(v)
  clear()
  local p = record_at(v)
  if p > #v then return end
  first = number(v, p) * 65536 + byte(v, p + 4) * 256 + byte(v, p + 5)
  strikes = byte(v, p + 6) * 256 + byte(v, p + 7)
  level = byte(v, p + 8)
  ban_ends, since, expires = number(v, p + 9), number(v, p + 13), number(v, p + 17)
  if strikes == 0 then length = since end -- the first strike sets since anew
end

local function expire()
  if expires <= now then clear() end
end

-- cut has a ban end no later than if it began now: a clock that stepped back makes
-- no ban longer. Without a length the ban is over, and keeps its end: a level is
-- forgiven so long after it.
local function cut()
  if length > 0 then ban_ends = min(ban_ends, after(0) + length) end
end

local function banned()
  return length > 0 and ban_ends > now
end

-- ban starts a ban, and ends any other. The index is where to look for bans;
-- whether they are in force, the subjects' values say.
local function ban(seconds, nanos)
  strikes = 0
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
  local base, growth = number(arg, rest + 10), byte(arg, rest + 14)
  local longest, forgive = number(arg, rest + 15), number(arg, rest + 19)
  if now > ban_ends then level = max(level - floor((now - ban_ends) / forgive), 0) end
  level = min(level + 1, 255)
  for _ = 2, level do
    if growth == 1 or base >= longest then break end
    base = base * growth
  end
  ban(min(base, longest), 0)
  expires = max(expires, ban_ends + level * forgive)
end

-- strike enters requests that are limited at this instant into the record. It
-- returns the letter of the answer and, unless that is i, how many were limited
-- before a ban began or was due.
local function strike(requests)
  local allowance, grace = byte(arg, rest) * 256 + byte(arg, rest + 1), number(arg, rest + 2)
  local decay = number(arg, rest + 6)
  if allowance == 0 then return 'g', requests end
  for i = 1, n do expires = max(expires, ends[i]) end
  local start, last_s, last_f = 0, 0, 0
  for q = 1, quotas do
    local fits, s, f, ending = room(q, 1)
    if fits == 0 and later(s, f, last_s, last_f) then start, last_s, last_f = start_of(q, ending), s, f end
  end
  local ms = now * 1000 + floor(micros / 1000)
  if first < start * 1000 or first > ms then first = ms end
  if first >= start * 1000 and ms - first < grace then return 'g', requests end
  since = min(since, now) -- the clock may have stepped back
  local forgotten = floor((now - since) / decay)
  strikes, since = strikes - forgotten, since + forgotten * decay
  if strikes <= 0 then strikes, since = 0, now end
  local limited = min(max(allowance - strikes, 0), requests)
  strikes, length = strikes + limited, 0
  if limited == requests then return 'd', limited end
  if not name then return 'i' end
  if name == '' then return 'h', limited end
  punish()
  return 'b', limited
end

-- store writes the windows that have begun and the record, if they have changed. Buckets
-- that are full are left out.
local function store(key, before)
  local v, counters, last = '', '', 0
  for i = 1, n do
    if used[i] > 0 or lengths[i] < SMOOTH and not opened[i] or lengths[i] >= SMOOTH and ends[i] > 0 then
      v = v .. four(lengths[i]) .. four(ends[i])
      counters = counters .. four(used[i])
      last = max(last, ends[i])
    end
  end
  v = v .. counters
  if first > 0 or ban_ends > 0 then -- as there is with strikes, and with a level
    expires = min(expires, MAX_U32)
    last = max(last, expires)
    v = v .. four(floor(first / 65536)) .. two(first % 65536) .. two(strikes) .. char(level) ..
      four(ban_ends) .. four(strikes > 0 and since or length) .. four(expires)
  end
  if key and v ~= before then
    if v == '' then
      call('DEL', key)
    else
      call('SET', key, v, 'EXAT', max(last, now) + AFTERLIFE)
    end
  end
  return v
end

local function answer(letter, v)
  return letter .. char(#v) .. v
end

--}

local operations = {}

-- Requests of one subject are decided as if they had come one after the other
-- at this instant: some are granted, then some limited, and the rest banned.
function operations.t(key, v, requests)
  read_open(v)
  open_plan()
  read_record(v)
  expire()
  cut()
  if banned() then return answer('d' .. two(0) .. two(0), store(key, v)) end
  local granted = requests
  for q = 1, quotas do granted = min(granted, (room(q, requests))) end
  if granted > 0 then
    charge(granted)
    strikes, length = 0, 0
  end
  if granted == requests then return answer('a', store(key, v)) end
  local letter, limited = strike(requests - granted)
  if letter == 'i' then return 'i' end
  return answer(letter .. two(granted) .. two(limited), store(key, v))
end

function operations.p(key, v)
  read_open(v)
  open_plan()
  read_record(v)
  expire()
  return answer('a', store(nil, v))
end

-- mark reports whether a change has no mark yet, and marks it until its windows have ended.
local function mark(others)
  local last = now + MARK_LASTS
  local function lasts(length, ending)
    local latest = now + length - SMOOTH
    if length < SMOOTH then latest = min(ending, max(ahead(length), now + CLOCKS_APART)) end
    last = max(last, latest + AFTERLIFE)
  end
  for q = 1, quotas do
    if limits[q] > 0 then lasts(windows[q], limits[q]) end
  end
  for i = 1, others do lasts(number(arg, rest + 8 * i - 3), number(arg, rest + 8 * i + 1)) end
  return call('SET', KEYS[2], '', 'NX', 'EXAT', last)
end

-- opened_later reports whether a window of a kind was opened after the charge, whose window
-- ends earlier. Calendar windows that are open at once can end at different times, and add
-- what is in doubt; those that follow each other are at least so long apart.
local function opened_later(length, ending, charged)
  if not is_calendar(length) then return ending > charged end
  return op == 'r' and ending - charged >= (length == DAY and 72000 or 2419200)
end

-- change changes the cost of a charge in the windows that it has reached: those with the
-- ends that they had then, or earlier ones if the clock stepped back. Units that are added
-- open a window, and a charge from after its end moves it.
local function change(key, v)
  local second, others = number(arg, rest), byte(arg, rest + 4)
  spans_at = rest + 5 + 8 * others
  if name and not mark(others) then return answer('a', v) end
  read_open(v)
  read_record(v)
  local function at(length, ending)
    local i, there = find(length)
    if ending <= now or there and opened_later(length, ends[i], ending) then return end
    if op == 'r' then
      if there then used[i] = max(used[i] - cost, 0) end
      return
    end
    ending = min(ending, ahead(length))
    if not there then
      i = make(length, ending)
    elseif second >= ends[i] then
      ends[i] = ending
    end
    used[i] = min(used[i] + cost, MAX_U32)
  end
  local function at_bucket(length, spans)
    local i, there = find(length)
    if not there and op == 'r' then return end
    if not there then i = make(length, 0) end
    set_full(i, spans, full(i)) -- no more than can be owed
    local s, f = full(i)
    local more_s, more_f = spans[1], spans[2]
    if op == 'r' then
      local owed_s, owed_f = minus(spans[5], spans[6], now, fraction)
      if owed_s < 0 then owed_s, owed_f = 0, 0 end
      if later(more_s, more_f, owed_s, owed_f) then more_s, more_f = owed_s, owed_f end
      s, f = minus(s, f, more_s, more_f)
    else
      s, f = plus(s, f, more_s, more_f)
    end
    set_full(i, spans, s, f)
  end
  for q = 1, quotas do
    local spans = read_spans(q)
    if limits[q] > 0 and spans then at_bucket(windows[q], spans) elseif limits[q] > 0 then at(windows[q], limits[q]) end
  end
  for i = 1, others do at(number(arg, rest + 8 * i - 3), number(arg, rest + 8 * i + 1)) end
  return answer('a', store(key, v))
end
operations.a, operations.r = change, change

-- A ban by hand keeps the level of the last one. The record outlives it as long as it
-- would have outlived that one: the plan, which says how soon a level is forgiven, is
-- not known here.
function operations.b(key, v)
  read(v, 0)
  read_record(v)
  expire()
  local afterlife = expires - ban_ends
  ban(number(arg, 2), number(arg, 6))
  if level > 0 then expires = max(expires, ban_ends + afterlife) end
  return answer('a', store(key, v))
end

-- The ban ends before its subject leaves the index, so that an error in between (a
-- right was taken away) leaves no ban that is not listed. Before both the index is
-- read: if it is not a sorted set, that is an error before anything is done.
function operations.u(key, v)
  call('ZREVRANGE', KEYS[2], 0, 0)
  read(v, 0)
  clear()
  store(key, v)
  call('ZREM', KEYS[2], name)
  return answer('a', v)
end

function operations.x(key, v)
  call('ZREVRANGE', KEYS[2], 0, 0)
  call('DEL', key)
  call('ZREM', KEYS[2], name)
  return answer('a', '')
end

function operations.s(key, v)
  return answer('a', v)
end

-- ours reports whether a subject's key holds what the script wrote, or nothing.
local function ours(key, v)
  if not v then return call('EXISTS', key) == 0 end
  local windows_size = record_at(v) - 1
  return v ~= '' and windows_size >= 0 and windows_size % WINDOW == 0 and windows_size <= MAX_WINDOWS * WINDOW
end

if op == 't' or op == 'p' then apart = not read_boundaries(rest + 23) end
if apart then
  for s = 1, subjects do out[2 * s + 3], out[2 * s + 4] = 'c', '' end
  return table.concat(out)
end

for _, s in ipairs(others) do
  local key, v, requests = KEYS[s], values[s], 1
  if counts ~= '' then requests = byte(counts, 2 * s - 1) * 256 + byte(counts, 2 * s) end
  out[2 * s + 3] = ours(key, v) and operations[op](key, v or '', requests) or 'e'
end
return table.concat(out)
--}
