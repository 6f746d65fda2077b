-- four returns a number as four bytes, and number reads it from the place i on.
local function four(x)
  local b, c, d = x % 16777216, x % 65536, x % 256
  return char((x - b) / 16777216, (b - c) / 65536, (c - d) / 256, d)
end
local function number(s, i)
  local a, b, c, d = byte(s, i, i + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

-- The fast part of leases, as fast.lua is that of takes: of a subject that has a note, and no
-- windows but those of its plan, which has room. Units that come back were charged to the same
-- windows, or before a reset. What it leaves to operations.lua costs time and changes no answer.
if op == 'p' and counts ~= '' and fixed == quotas then
  local v, note, back = values[1] or '', call('MGET', KEYS[3])[1] or '', 0
  local record, expires, over = sub(v, 12 * quotas + 1), 0, false -- over: a window or the record has ended
  local known = #note == 8 and #v == 12 * quotas
  if #note == 8 and #record == 21 then
    expires = number(record, 18)
    known = sub(record, 14, 17) == '\0\0\0\0' -- there are neither strikes nor a ban
    if expires <= now then known, over, record, expires = true, true, '', 0 end
  end
  if known and sub(counts, 12, 15) == sub(note, 1, 4) then
    back = number(counts, 21)
    known = sub(counts, 17, 20) == '\0\0\0\0' and sub(counts, 29) == char(quotas, quotas) .. heads
  end

  -- The units that each window has used, and how many the share has.
  local makes, share = byte(counts, 11), number(counts, 5)
  if sub(counts, 1, 4) ~= '\0\0\0\0' then share = SECOND end
  for q = 1, known and quotas or 0 do
    local used = number(v, 8 * quotas + 4 * q - 3)
    if sub(v, 8 * q - 7, 8 * q) ~= sub(heads, 8 * q - 7, 8 * q) then
      known = known and sub(v, 8 * q - 7, 8 * q - 4) == sub(heads, 8 * q - 7, 8 * q - 4) and number(v, 8 * q - 3) <= now
      used, over = 0, true
    end
    if back < used then used = used - back else used = 0 end
    local left = limits[q] - used
    known = known and left >= cost and limits[q] < WIDE_LIMIT
    left = left - makes * cost
    left = (left - left % 2) / 2
    if left < share then share = left end
    uses[q] = used
  end

  local units = makes * cost + share
  if known and (units > 0 or not over) then
    local fresh = heads
    for q = 1, quotas do fresh = fresh .. four(uses[q] + units) end
    fresh = fresh .. record
    local last = expires > last_end and expires or last_end
    if units > 0 and number(note, 5) < last_end then
      call('SET', KEYS[3], sub(note, 1, 4) .. four(last), 'EXAT', last + AFTERLIFE)
    end
    if over then
      call('SET', KEYS[1], fresh, 'EXAT', last + AFTERLIFE)
    elseif fresh ~= v then
      call('SET', KEYS[1], fresh, 'KEEPTTL')
    end
    return time[1] .. ' ' .. time[2] .. ' a' .. char(#fresh + 12) .. fresh .. '\0\0\0\0' ..
      four(share) .. sub(note, 1, 4)
  end
end
