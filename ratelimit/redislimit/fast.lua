-- The fast part reads the plans, and decides the takes of which there are many, admitted or not:
-- those of subjects that have windows of their plans only, if all requests of a group are
-- granted, or all are refused and start no ban. A take of one subject is a group of one.
--
-- Redis runs the whole script for each call, and making a function takes the interpreter
-- as long as counting a request does. So this part makes one only for denials, and returns if
-- no other takes are left. What its loop leaves to operations.lua costs time and changes no
-- answer: each rule stands there once more, and both must agree to the byte. The caller has
-- checked that a request alone fits into every quota.

local takes = op == 't' or grouped

-- The plan at hand. Its fixed windows are in heads as a value has them, if all are open.
-- The last of their ends is last_end, and starts has the starts of calendar windows. Smooth
-- quotas come last: places says where the plan has them, and spans has six numbers for each.
local cost, quotas, fixed, heads, last_end, limits, starts, lengths, places, spans
local plans, at = grouped and {}, 1 -- of groups: a plan is these ten, and where in arg it is
local apart -- the boundaries of a calendar window are not around now
for p = 1, grouped and byte(arg, 2) or (takes or op == 'p') and 1 or 0 do
  local size = #arg
  if grouped then
    if p == 1 then at = 3 end
    size, at = byte(arg, at), at + 1
  end
  local a, b, c, d, e, f, g, h
  a, b, c, d, quotas = byte(arg, at + 1, at + 5)
  cost, fixed, heads, last_end = ((a * 256 + b) * 256 + c) * 256 + d, 0, '', 0
  limits, starts, lengths, places, spans = {0, 0, 0, 0}, nil, nil, nil, nil
  local boundaries = at + 29 + 8 * quotas
  for i = at + 6, at + 8 * quotas, 8 do
    a, b, c, d, e, f, g, h = byte(arg, i, i + 7)
    if a < 128 then
      fixed = fixed + 1
      limits[fixed] = ((e * 256 + f) * 256 + g) * 256 + h
      local length = ((a * 256 + b) * 256 + c) * 256 + d
      local ending = now - now % length + length
      if length == DAY or length == MONTH then
        local k, start = boundaries, 0
        ending = 0
        while ending <= now and k < boundaries + 16 do
          e, f, g, h = byte(arg, k, k + 3)
          start, ending, k = ending, ((e * 256 + f) * 256 + g) * 256 + h, k + 4
        end
        apart = apart or k == boundaries + 4 or ending <= now
        starts, boundaries = starts or {}, boundaries + 20
        starts[fixed] = start
      end
      if ending > last_end then last_end = ending end
      e, f, g = ending % 16777216, ending % 65536, ending % 256
      heads = heads .. char(a, b, c, d, (ending - e) / 16777216, (e - f) / 65536, (f - g) / 256, g)
    end
  end
  if fixed < quotas then
    local q, from = fixed, at + size - 24 * (quotas - fixed)
    lengths, places, spans, fixed = {}, {}, {}, 0
    for place = 1, quotas do
      local i = at + 8 * place - 2
      if byte(arg, i) < 128 then
        fixed = fixed + 1
        places[fixed] = place
      else
        q = q + 1
        places[q], lengths[q] = place, sub(arg, i, i + 3)
        for k = from, from + 20, 4 do
          a, b, c, d = byte(arg, k, k + 3)
          spans[#spans + 1] = ((a * 256 + b) * 256 + c) * 256 + d
        end
        from = from + 24
      end
    end
  end
  if grouped then plans[p] = {cost, quotas, fixed, heads, last_end, limits, starts, lengths, places, spans, at} end
  at = at + size
end

local others, group = nil, 4 -- others: the arguments of decide for groups left to operations.lua
if apart then return table.concat(out) .. 'c' end

local due -- the subjects of which holds have expired; nil: none
for k = 1, held and subjects or 0 do
  local first = (takes and call or redis.pcall)('ZREVRANGE', KEYS[#KEYS - subjects + k], -1, -1, 'WITHSCORES')
  if first[1] and first[2] + 0 <= now then
    due = due or {}
    due[#due + 1] = k
  end
end

local uses = {0, 0, 0, 0} -- of the subject at hand, by quota, after the takes
-- Of the takes of a group: the answers up to the values, the values after the takes, when
-- the keys expire (0: as before), and which takes are refused. And of subjects: when the
-- keys that are to be written expire.
local fronts, afters, expiries, refused, written
if grouped then fronts, afters, expiries, refused, written = {}, {}, {}, {}, {} end
-- What only denials need: the time, made by the first one, and a plan's penalty.
local four, ms, ms_bytes, now_bytes, allowance, grace, decay, penalty_of
-- The place of the next group is at: in the argument, or its subject.
local k
local plan_number, members, requests, last = 1, 1, 1, grouped and #arg or subjects
if not grouped then at = 1 end
while takes and at <= last do
  if grouped then
    local high, low
    members, high, low = byte(arg, at, at + 2)
    requests = high * 256 + low
  elseif counts ~= '' then
    local high, low = byte(counts, 2 * at - 1, 2 * at)
    requests = high * 256 + low
  end
  local known, any_refused, partly, answer = not named and not due, false, false, nil
  for m = 1, members do
    k = at
    if grouped then
      k, plan_number = byte(arg, at + 2 * m + 1, at + 2 * m + 2)
      cost, quotas, fixed, heads, last_end, limits, starts, lengths, places, spans = unpack(plans[plan_number], 1, 10)
    end
    -- old_end: the last end of all that is there, and of the plan.
    local v, units, old_end = values[k] or '', requests * cost, last_end
    -- Where the record is, or would be, how many windows are before it, and whether these
    -- are the open windows of the plan.
    local size = #v
    local record = size % 12 == 9 and size - 20 or size + 1
    local n = (record - 1) / 12
    local open = n == quotas and sub(v, 1, 8 * fixed) == heads

    -- The most common case: two windows, no record, and room.
    if open and size == 24 and fixed == 2 and known and not grouped then
      local a, b, c, d, e, f, g, h = byte(v, 17, 24)
      d, h = d + units, h + units
      if d < 256 and h < 256 and ((a * 256 + b) * 256 + c) * 256 + d <= limits[1] and
        ((e * 256 + f) * 256 + g) * 256 + h <= limits[2] then
        v = heads .. char(a, b, c, d, e, f, g, h)
        call('SET', KEYS[k], v, 'KEEPTTL')
        answer = 'a\24' .. v
        break
      end
    end

    if not known or byte(v) == 255 or n > quotas or n % 1 ~= 0 or values[k] == '' or
      grouped and v == '' and call('EXISTS', KEYS[k]) == 1 then
      known = false
      break
    end

    -- The quotas. w is the window that comes next, or past all if operations.lua must decide. The
    -- last quota that refuses a request has room at refusing, and its window began at start.
    local w, p, fits, ended, new_heads, new_end = 1, 1, true, false, heads, last_end
    local refusing, refusing_f, start, place = 0, 0, 0, 0
    for q = 1, quotas do
      local used, ending, there = 0, 0, open and q <= fixed
      if not there and w <= n then
        there = sub(v, 8 * w - 7, 8 * w - 4) == (q <= fixed and sub(heads, 8 * q - 7, 8 * q - 4) or lengths[q])
        if there then
          local a, b, c, d = byte(v, 8 * w - 3, 8 * w)
          ending = ((a * 256 + b) * 256 + c) * 256 + d
        end
      end
      if there then
        local a, b, c, d = byte(v, 8 * n + 4 * w - 3, 8 * n + 4 * w)
        used, w = ((a * 256 + b) * 256 + c) * 256 + d, w + 1
      end
      if q <= fixed then
        if there and not open and ending <= now then
          ended, used = true, 0
        elseif there and not open and sub(v, 8 * w - 11, 8 * w - 8) ~= sub(heads, 8 * q - 3, 8 * q) then
          -- it is in the future
          w = n + 2
          break
        end
        if used + units > limits[q] then
          if limits[q] == WIDE_LIMIT then w = n + 2 break end -- the limit may be larger
          fits = false
          if used + cost > limits[q] then
            local a, b, c, d, e, f, g, h = byte(heads, 8 * q - 7, 8 * q)
            local ending = ((e * 256 + f) * 256 + g) * 256 + h
            if ending > refusing then
              refusing, place = ending, places and places[q]
              start = starts and starts[q] or ending - (((a * 256 + b) * 256 + c) * 256 + d)
            end
          end
        end
        used = used + units
      else
        -- How long the bucket takes to be full, before the takes.
        local owed_s, owed_f = 0, 0
        if there then
          owed_s, owed_f = ending - now, -used - fraction
          while owed_f < 0 do owed_s, owed_f = owed_s - 1, owed_f + SECOND end
          if owed_s < 0 or owed_s == 0 and owed_f == 0 then
            ended, owed_s, owed_f = true, 0, 0
          elseif ending > old_end then
            old_end = ending
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
        if f1 >= SECOND then s1, f1 = s1 + 1, f1 - SECOND end
        local more = owed_f + one_f * requests
        local f2 = more % SECOND
        local s2 = owed_s + one_s * requests + (more - f2) / SECOND
        if s2 > burst_s or s2 == burst_s and f2 > burst_f then
          fits = false
          if s1 > burst_s or s1 == burst_s and f1 > burst_f then
            local rs, rf = now + s1 - burst_s, fraction + f1 - burst_f -- when there is room
            if rf < 0 then rs, rf = rs - 1, rf + SECOND end
            if rf >= SECOND then rs, rf = rs + 1, rf - SECOND end
            if rs > refusing or rs == refusing and (rf > refusing_f or rf == refusing_f and places[q] < place) then
              refusing, refusing_f, place = rs, rf, places[q]
              start = ending - spans[p - 4] - 2
            end
          end
        end
        ending, used = now + s2, fraction + f2 -- the time at which the bucket is full
        if used >= SECOND then ending, used = ending + 1, used - SECOND end
        if used > 0 then ending, used = ending + 1, SECOND - used end
        if fits then
          if ending > new_end then new_end = ending end
          local b, c, d = ending % 16777216, ending % 65536, ending % 256
          new_heads = new_heads .. lengths[q] .. char((ending - b) / 16777216, (b - c) / 65536, (c - d) / 256, d)
        end
      end
      uses[q] = used
    end
    if w ~= n + 1 then
      known = false
      break
    end

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

    -- The new value, the answer before it, and when the key expires. Whether the requests are
    -- denied is nil if operations.lua must decide.
    local fresh, front, expiry, denied
    if strikes == 0 and since > 0 and ban_ends > now then -- since: the length
      if not ended and ban_ends <= now + since % BY_HAND then
        fresh, front, denied = v, 'd\0\0\0\0', true
      end

    elseif fits then
      fresh, front, denied = new_heads, 'a', false
      for q = 1, quotas do
        local sum = uses[q]
        local b, c, d = sum % 16777216, sum % 65536, sum % 256
        fresh = fresh .. char((sum - b) / 16777216, (b - c) / 65536, (c - d) / 256, d)
      end
      if strikes > 0 or since > 0 then
        fresh = fresh .. sub(v, record, record + 5) .. '\0\0' .. sub(v, record + 8, record + 12) ..
          '\0\0\0\0' .. sub(v, record + 17)
      elseif expires > 0 then
        fresh = fresh .. sub(v, record)
      end
      expiry = open and fixed == quotas and 0 or (expires > new_end and expires or new_end) + AFTERLIFE

    elseif refusing > 0 and not ended then -- every request is refused
      if not four then
        ms = time[2] / 1000
        ms = now * 1000 + ms - ms % 1
        four = function(x)
          local b, c, d = x % 16777216, x % 65536, x % 256
          return char((x - b) / 16777216, (b - c) / 65536, (c - d) / 256, d)
        end
        now_bytes = four(now)
        ms_bytes = four((ms - ms % 65536) / 65536) .. char((ms % 65536 - ms % 256) / 256, ms % 256)
      end
      if penalty_of ~= plan_number then
        penalty_of = plan_number
        local penalty = (grouped and plans[plan_number][11] or 1) + 6 + 8 * quotas
        local a, b, c, d, e, f, g, h, i, j = byte(arg, penalty, penalty + 9)
        allowance, grace = a * 256 + b, ((c * 256 + d) * 256 + e) * 256 + f
        decay = ((g * 256 + h) * 256 + i) * 256 + j
      end
      front, denied = 'g', true
      if allowance == 0 then
        fresh = (record > size or expires > 0) and v or sub(v, 1, record - 1)
      else
        local first = 0
        if expires > 0 then
          first = ((((f1 * 256 + f2) * 256 + f3) * 256 + f4) * 256 + f5) * 256 + f6
        end
        local begins = first == 0 or first < start * 1000 or first > ms
        if begins then first = ms end
        local since_bytes -- nil: as before
        if ms - first >= grace then
          front = 'd'
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
              (since_bytes or '\0\0\0\0') .. four(old_end)
          elseif not begins and not since_bytes and expires >= old_end then -- faster than the next branch
            fresh = sub(v, 1, record + 5) .. strikes_bytes .. sub(v, record + 8)
          else
            fresh = sub(v, 1, record - 1) .. (begins and ms_bytes or sub(v, record, record + 5)) ..
              strikes_bytes .. sub(v, record + 8, record + 12) .. (since_bytes or sub(v, record + 13, record + 16)) ..
              (expires < old_end and four(old_end) or sub(v, record + 17))
          end
        end
      end
      front = front .. char(0, 0, (requests - requests % 256) / 256, requests % 256)
      expiry = (open or expires >= old_end) and 0 or old_end + AFTERLIFE

    elseif grouped and refusing == 0 then
      partly, denied = true, false
    end

    if not fresh and denied ~= false then
      known = false
      break
    elseif grouped then
      fronts[m], afters[m], expiries[m], refused[m] = front, fresh, expiry, denied
      any_refused = any_refused or denied
    elseif fresh == v then
      answer = front .. char(size) .. v
    elseif v == '' then -- the key may hold something that is not a string: GET makes that an error
      local old = redis.pcall('SET', KEYS[k], fresh, 'EXAT', expiry, 'GET')
      if old and sub(old.err, 1, 9) ~= 'WRONGTYPE' then return old end
      answer = old and 'e' or front .. char(#fresh) .. fresh
    else
      if expiry == 0 then
        call('SET', KEYS[k], fresh, 'KEEPTTL')
      else
        call('SET', KEYS[k], fresh, 'EXAT', expiry)
      end
      answer = front .. char(#fresh) .. fresh
    end
  end

  group = group + 1
  if grouped and known and (any_refused or not partly) then
    answer = ''
    for m = 1, members do
      k = byte(arg, at + 2 * m + 1)
      local before, v = values[k] or '', afters[m]
      if any_refused and not refused[m] then
        answer = answer .. 's\0\0\0\0' .. char(#before) .. before
      else
        answer = answer .. fronts[m] .. char(#v) .. v
        if v ~= before then
          values[k] = v
          if not written[k] or expiries[m] > written[k] then written[k] = expiries[m] end
        end
      end
    end
  end
  out[group] = answer or ''
  if not answer then
    others = others or {}
    others[#others + 1] = {group, at, members, requests}
  end
  at = at + (grouped and 2 * members + 3 or 1)
end
if grouped then
  for subject, expiry in pairs(written) do
    if expiry == 0 then
      call('SET', KEYS[subject], values[subject], 'KEEPTTL')
    else
      call('SET', KEYS[subject], values[subject], 'EXAT', expiry)
    end
  end
end

-- hold enters the hold of what subject k was charged, whose value is v. Function keep in hold.go
-- makes the same bytes of it.
local hold = held and function(k, v)
  local score, n = now + byte(held, 2) * 256 + byte(held, 3) + 1, (#v % 12 == 9 and #v - 21 or #v) / 12
  while n > 0 and byte(v, 8 * n - 7) >= 128 do n = n - 1 end -- smooth quotas, and second entries
  local last = score + MARK_LASTS - AFTERLIFE
  for i = 8, 8 * n, 8 do
    local a, b, c, d = byte(v, i - 3, i)
    local ending = ((a * 256 + b) * 256 + c) * 256 + d
    if ending > last then last = ending end
  end
  local holds, id = KEYS[#KEYS - subjects + k], sub(held, 14 * subjects + 4)
  call('ZADD', holds, score, sub(held, 14 * k - 10, 14 * k + 3) .. char(n) .. sub(v, 1, 8 * n) .. id)
  call('EXPIREAT', holds, last + AFTERLIFE, 'NX')
  call('EXPIREAT', holds, last + AFTERLIFE, 'GT') -- another one may last longer
end
if takes and not others then
  for k = 1, hold and byte(out[5]) == 97 and subjects or 0 do hold(k, grouped and values[k] or sub(out[5], 3)) end
  return table.concat(out)
end
