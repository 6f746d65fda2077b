-- KEYS[1]: the leases of a subject: a sorted set by their end, in ms of the server's clock.
-- ARGV: the duration of a lease in ms; the limit; the lease to add or renew.
-- Returns 1 if it is there, 0 if the limit leaves no room.
local key, lease = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
-- It is there already if the client repeats a call whose reply was lost.
if redis.call('ZCARD', key) >= tonumber(ARGV[2]) and not redis.call('ZSCORE', key, ARGV[3]) then
	return 0
end
redis.call('ZADD', key, now + lease, ARGV[3])
if redis.call('PTTL', key) < lease then -- other processes may have longer leases
	redis.call('PEXPIRE', key, lease)
end
return 1
