-- What the script is sent, what it answers, and what it keeps of a subject.
--
-- The script is five files, one after the other. Read this one, rules.lua, fast.lua, lease.lua
-- and operations.lua; Redis runs fast.lua and lease.lua before rules.lua.
--
-- KEYS     One key for each subject; no two are equal. If names are given, the index of
--          bans of each subject follows, in the same order. If a change is marked, the
--          mark follows. The holds of the subject follow for h, for a change that settles
--          one, and, in the same order, for each subject of takes that are held, and of
--          peeks. Last, for x, a lease, and r of a smooth quota, comes the subject's
--          note: the generation of its usage 4, which a reset changes, and until when that
--          matters 4; then for each smooth quota to which units were given back its length 4,
--          the number of Returns of package gcra 1, and of each the four times 8
-- ARGV[1]  The operation, one letter, and what it needs, in binary:
--            t  take       cost 4, quotas 1, for each quota window 4 (seconds) and
--                          limit 4 (at most WIDE_LIMIT, see below), the shortest
--                          window first; then the penalty:
--                          strikes 2, grace 4 (milliseconds), decay 4, ban 4,
--                          growth 1, max 4, forgive 4 (seconds); then for each
--                          calendar quota five boundaries 4; then for each quota
--                          with WIDE_LIMIT the cost 8 and its limit 8; then for each
--                          smooth quota three spans of time 8: until cost, the
--                          limit, and the burst are back
--            p  peek       the same; with ARGV[2] a lease, with the cost 1 if it makes no request
--            m  groups     the number of plans 1; for each its size 1, and the operation t;
--                          then for each group of takes their number 1, how many requests
--                          make them 2, and for each take the numbers of its subject 1
--                          and of its plan 1, from 1. Of a group all takes are made, or
--                          none. Groups are decided one after the other, and may share
--                          subjects
--            a  add        units 8, the second of the charge 4, quotas 1, windows 1; for
--                          each window, those of the quotas first, its length 4 and the
--                          end of the one that was charged 4, 0 if none was; then for
--                          each smooth quota four times 8: how long the units and the
--                          limit take to come back, when the charge was made, and when
--                          the bucket was full after it
--            r  give back  the same
--            b  ban        whole seconds 4, and nanoseconds 4; if it is made by hand 'h' and its
--                          reason, which may be empty
--            u  unban, x  reset, s  show: nothing
--            h  renew a hold: its timeout 2 (seconds)
-- ARGV[2]  For a take: how many requests each subject makes, 2 each. Empty: one.
--          If what one request takes is held: a byte 255, the timeout 2 (seconds), for each
--          subject the front of the operation r that gives it back, up to quotas, which is 0,
--          and the id of the request
--          For peeks: a byte 255, if the holds are among the keys
--          For a lease: the most units of the share 8, how many requests are refused if
--          one is 2, and 1 if the lease makes one, or 0, 1; then, to give back what is left
--          of another lease, its generation 4 and the operation r
-- ARGV[3]  ... The name of each subject in the index, for a ban, an unban, a reset, a lease, and
--          takes that were answered "i". For a change that is marked: not empty. For one that
--          settles a hold: empty, then the hold, and the units of the request. For h: the hold.
--          For a take that cannot have the index: empty; it then starts no ban.
--
-- The reply is the server's time, seconds and microseconds in decimal with a space after
-- each, and for each subject, and each take of each group, a letter and what comes with it:
--   a  done; of a take: every request was granted           then a value
--   d  granted 2, limited 2, the others were banned; the    then a value
--      limited ones were strikes
--   g  the same, and the limited ones were no strikes       then a value
--   b  the same as d, and the first of those that were      then a value
--      banned started the ban: there is one
--   h  granted 2, limited 2, which were strikes; the others then a value
--      were limited too, as the ban is due that cannot start
--   s  granted 2, 0 2; the others were not made, since      then a value, which
--      another take of the group was refused                may have what is over
-- or, once for a group:
--   i  nothing was done: it would start a ban, and the names were not given
--   e  nothing was done: the key holds a value of something else; of a group also the
--      number of the take 1
--   x  no take was made: the same of the index of bans
-- or, once for the whole call:
--   c  nothing was done: the boundaries are not around the server's time
-- where a value is its length 1, and the subject's value as it is now; of a lease, also
-- the units of the share 8, and the generation 4; of an unban, as it was before. The reason
-- of a ban comes before the length, as it is kept.
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
--            of the last ban, 0 once a request was admitted after it; BY_HAND
--            more if the ban was made by hand
--   expires  the time from which the record does not count
--
-- If a ban by hand has a reason of its own, the value begins with a byte 255, which no
-- length begins with, the length of the reason 1, and the reason.
--
-- The holds of a subject are a sorted set. The score of one is when it expires, rounded up. It is
-- the operation r that gives back what was charged, and the id of the request. Once it has expired,
-- the next peek, or take that is held, does so, and the hold stays as one that has ended. It can be
-- forgotten when its windows have ended and ten minutes have passed: FORGET, in operations.lua,
-- more than that time is then its score. The windows of the operation are the first entries of the
-- subject's value after the charge: not those of smooth quotas, and not second ones.
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
-- A window of which 2^32 units or more are used has a second entry behind all others, with
-- the same end, and a length that is WIDE more. There used is how many times 2^32 units are
-- used, and in the first entry it is the rest.
--
-- Units are at most 2^53 - 1. A take has a limit of WIDE_LIMIT in place of a larger one, and
-- a cost of 2^32 - 1, which does not fit into it, in place of a larger one. The fast part
-- leaves what does not fit into WIDE_LIMIT to operations.lua, which reads the whole numbers.
--
-- Binary numbers are big-endian and unsigned. Times are Unix seconds where nothing
-- else is said; 32 bits of them last until 2106.
--
-- Lua's numbers are doubles, exact up to 2^53. The largest here are milliseconds since 1970
-- (2^41), microseconds of a second times 2^32 (2^52), and units. A sum of units over 2^53 may
-- be rounded, and becomes MAX_UNITS. All are whole: every division is exact or rounded down.
-- That of units is never rounded up before, since both numbers are less than 2^53. They
-- become decimal digits only as arguments of Redis commands, and are seconds there.

local call, byte, char, sub = redis.call, string.byte, string.char, string.sub

local AFTERLIFE = 5 -- seconds that a key outlives what it holds
local MARK_LASTS = 600 -- seconds: for so long an adjustment can be repeated
local DAY, MONTH = 172801, 2764801
local SMOOTH = 2147483648 -- what the length of a smooth quota is more than its window
local SECOND = 4294967296 -- of 2^-32 seconds
local WIDE = 3221225472 -- what the length of the second entry of a window is more than its window
local WIDE_LIMIT = 4294967294
local BY_HAND = 2147483648

local arg, counts = ARGV[1], ARGV[2] or ''
local op = sub(arg, 1, 1)
local named, grouped = ARGV[3], op == 'm'
local held = byte(counts) == 255 and counts
if held then counts = '' end
local subjects = 1
if grouped or not named then subjects = #KEYS / (1 + (named and 1 or 0) + (held and 1 or 0)) end
local time = call('TIME')
local now = time[1] + 0
local fraction = time[2] * SECOND / 1000000 -- of now, in 2^-32 seconds
fraction = fraction - fraction % 1
local values = call('MGET', unpack(KEYS, 1, subjects)) -- as they are now; false: no string
local out = {time[1], ' ', time[2], ' '} -- and a string for each subject or group
