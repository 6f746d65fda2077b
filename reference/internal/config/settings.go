package config

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/database"
)

// A setting is what the file, the environment or a flag can set.
type setting struct {
	name  string // as in the file, after the group that it is in: "penalty.strikes"
	about string // for reference/docs/CONFIGURATION.md
	rule         // how it is read and shown

	variable bool // the environment can set it, although there is no flag
	secret   bool // it can hold a secret, so a variable can name a file with the value
	restart  bool // a reload does not apply a change
}

// hasFlag reports whether a flag can set it.
func (s setting) hasFlag() bool {
	_, exists := Flags{}.lookup(s.name)
	return exists
}

// hasVariable reports whether the environment can set it.
func (s setting) hasVariable() bool { return s.variable || s.hasFlag() }

// settings are all settings, in the order of reference/docs/CONFIGURATION.md. A flag of a
// setting is a field of [Flags].
var settings = []setting{
	{name: "listen", restart: true, about: "Address of the API. An address that other machines can reach needs TLS (`tls_cert` and `tls_key`), or proxies that terminate it (`trusted_proxies`). Port 0 takes a free port.",
		rule: address("127.0.0.1:8080", func(c *Config) *string { return &c.Listen }, parseAddress)},
	{name: "admin_listen", restart: true, about: "Address of the admin listener; empty turns it off. An address that other machines can reach needs `admin_token`.",
		rule: address("127.0.0.1:9090", func(c *Config) *string { return &c.AdminListen }, parseAddressOrNone)},
	{name: "admin_token", variable: true, secret: true, restart: true, about: "Bearer token of the admin listener, of at least 16 characters. It has no flag, because other users of the machine can see flags.",
		rule: scalar(text, "text", func(c *Config) *Secret { return &c.AdminToken }, parseToken, Secret.Reveal).shownAs(redacted)},
	{name: "tls_cert", about: "PEM file with the certificate chain. It turns on TLS, which needs a restart. When the files change, the server reads them again.",
		rule: file(func(c *Config) *string { return &c.TLSCert })},
	{name: "tls_key", about: "PEM file with the private key of the certificate.",
		rule: file(func(c *Config) *string { return &c.TLSKey })},
	{name: "max_connections", about: "Maximum number of open connections to the API. To accept one more, the server closes the one that has been idle longest.",
		rule: whole(func(c *Config) *int { return &c.MaxConnections }, "", 1, maxConnections)},
	{name: "max_connections_per_network", about: "How many of them one IPv4 address or IPv6 /64 may have. Loopback addresses and `trusted_proxies` are exempt.",
		rule: whole(func(c *Config) *int { return &c.MaxConnectionsPerNetwork }, "", 1, maxConnections)},
	{name: "drain_delay", about: "How long the server keeps serving after SIGTERM while `/readyz` answers 503, so that load balancers notice. From 0s to 1h.",
		rule: period(func(c *Config) *time.Duration { return &c.DrainDelay }, 0)},
	{name: "timeouts.read_header", restart: true, about: "How long a client may take to send the header section.",
		rule: period(func(c *Config) *time.Duration { return &c.Timeouts.ReadHeader }, time.Millisecond)},
	{name: "timeouts.read", restart: true, about: "How long a client may take to send the whole request.",
		rule: period(func(c *Config) *time.Duration { return &c.Timeouts.Read }, time.Millisecond)},
	{name: "timeouts.write", restart: true, about: "How long the response may take, from the end of the header section on.",
		rule: period(func(c *Config) *time.Duration { return &c.Timeouts.Write }, time.Millisecond)},
	{name: "timeouts.idle", restart: true, about: "How long a connection may stay open between two requests.",
		rule: period(func(c *Config) *time.Duration { return &c.Timeouts.Idle }, time.Millisecond)},
	{name: "timeouts.store", about: "How long the database may take for one request. After that the answer is 503. For writes to PostgreSQL, the value at the start of the server counts. It must be shorter than `timeouts.write`.",
		rule: period(func(c *Config) *time.Duration { return &c.Timeouts.Store }, time.Millisecond)},
	{name: "timeouts.drain", about: "How long the server waits for running requests when it stops.",
		rule: period(func(c *Config) *time.Duration { return &c.Timeouts.Drain }, time.Millisecond)},
	{name: "database", secret: true, restart: true, about: "Where pets and keys are kept: a SQLite file, or PostgreSQL with a URL such as `postgres://user:password@host:5432/database`. Other users of the machine can see a password in a flag, so set it in the file or in the variable, or leave it to `PGPASSWORD` or `PGPASSFILE`.",
		rule: scalar(text, "text", func(c *Config) *string { return &c.Database }, parseDatabase, asIs).shownAs(database.Redacted)},
	{name: "migrate", restart: true, about: "How an older schema of the database is upgraded: `auto` (the server, and each command that opens the database, upgrades it) or `manual` (only `petstore migrate` does; the others refuse it).",
		rule: choice(func(c *Config) *string { return &c.Migrate }, MigrateAuto, MigrateManual)},
	{name: "first_key", variable: true, restart: true, about: "Whether the server makes a key with the plan `free`, and writes it to standard error, if the database has never held one. Turn it off where standard error is stored.",
		rule: yesOrNo(func(c *Config) *bool { return &c.FirstKey })},
	{name: "usage_file", restart: true, about: "File in which the server keeps usage and bans across restarts if it counts them itself, without `redis`. Empty: beside the SQLite file, under its name with `-usage`. With PostgreSQL, either `redis` or this must be set.",
		rule: file(func(c *Config) *string { return &c.UsageFile })},
	{name: "redis", secret: true, restart: true, about: "Where usage and bans are counted: empty for this process, or `redis://host:6379` for all servers together; several URLs, separated by commas, for a cluster.",
		rule: scalar(text, "text", func(c *Config) *[]string { return &c.Redis }, parseRedis, joinRedis).shownAs(redacted)},
	{name: "on_redis_failure", restart: true, about: "What happens to requests while Redis does not answer: `local` (each server limits by itself), `open` (they are not limited) or `closed` (they get 503).",
		rule: choice(func(c *Config) *string { return &c.OnFailure }, "local", "open", "closed")},
	{name: "redis_shares", restart: true, about: "Whether each server takes units of a subject with many requests from Redis in advance, and decides these requests in memory: [when to turn it on](SCALING.md#shares).",
		rule: yesOrNo(func(c *Config) *bool { return &c.RedisShares })},
	{name: "plans", about: "The plans that a key can have, each with up to four quotas such as `60/minute`, `60/minute smooth 10`, `10000/month from 17` or `1000/day in Europe/Berlin`, or `custom` if each key has its own, `suspended` to refuse every request, or `unlimited`. The file replaces all of them.",
		rule: rule{read: (*decoder).plans, show: planValues}},
	{name: "anonymous", about: "Quotas of callers without a valid key, for each network.",
		rule: quotas(func(c *Config) **ratelimit.Plan { return &c.Anonymous }, (*decoder).anonymous)},
	{name: "uncharged", about: "Separate quotas of requests that are not charged, for each network (`/docs`, `/openapi.json`, CORS preflights, and requests with a key that cannot be checked) and each owner (`GET /v1/usage`). Reaching them never leads to a ban.",
		rule: quotas(func(c *Config) **ratelimit.Plan { return &c.Uncharged }, (*decoder).uncharged)},
	{name: "penalty.strikes", about: "More strikes than this start a ban. 0 turns bans off.",
		rule: decimal(func(c *Config) *int { return &c.Penalty.Strikes })},
	{name: "penalty.grace", about: "Requests that arrive within this time of the first denial are not strikes.",
		rule: length(func(c *Config) *time.Duration { return &c.Penalty.Grace })},
	{name: "penalty.decay", about: "The time in which one strike is forgotten.",
		rule: length(func(c *Config) *time.Duration { return &c.Penalty.Decay })},
	{name: "penalty.ban", about: "Length of the first ban.",
		rule: length(func(c *Config) *time.Duration { return &c.Penalty.Ban })},
	{name: "penalty.growth", about: "Each further ban is longer by this factor.",
		rule: decimal(func(c *Config) *int { return &c.Penalty.Growth })},
	{name: "penalty.max", about: "Length of the longest ban.",
		rule: length(func(c *Config) *time.Duration { return &c.Penalty.Max })},
	{name: "penalty.forgive", about: "Each such time without a ban undoes one step of growth.",
		rule: length(func(c *Config) *time.Duration { return &c.Penalty.Forgive })},
	{name: "draft_headers", about: "Whether responses also have `RateLimit` and `RateLimit-Policy`, as in draft-ietf-httpapi-ratelimit-headers.",
		rule: yesOrNo(func(c *Config) *bool { return &c.DraftHeaders })},
	{name: "trusted_proxies", about: "Networks of trusted proxies. Their `X-Forwarded-For` names the client.",
		rule: list("networks such as [10.0.0.0/8]", func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, parseProxies, netip.Prefix.String, netip.Prefix.Compare)},
	{name: "cors_origins", about: "Pages of these origins may call the API, such as `https://app.example`.",
		rule: list("origins such as [https://app.example]", func(c *Config) *[]string { return &c.CORSOrigins }, parseOrigin, asIs, nil)},
	{name: "deny.networks", about: "Clients in these networks get 403 `access_denied`, with or without a key. `deny` overrides `allow`.",
		rule: list("networks such as [192.0.2.0/24]", func(c *Config) *[]netip.Prefix { return &c.Deny.Networks }, parseNetwork, netip.Prefix.String, netip.Prefix.Compare)},
	{name: "deny.owners", about: "Keys of these owners get 403 `access_denied`.",
		rule: list("owners such as [ann]", func(c *Config) *[]string { return &c.Deny.Owners }, parseOwner, asIs, strings.Compare)},
	{name: "allow.networks", about: "Clients in these networks are counted, and neither limited nor banned, with or without a key.",
		rule: list("networks such as [192.0.2.0/24]", func(c *Config) *[]netip.Prefix { return &c.Allow.Networks }, parseNetwork, netip.Prefix.String, netip.Prefix.Compare)},
	{name: "allow.owners", about: "Keys of these owners are counted, and neither limited nor banned.",
		rule: list("owners such as [ann]", func(c *Config) *[]string { return &c.Allow.Owners }, parseOwner, asIs, strings.Compare)},
	{name: "deprecations", about: "Deprecated operations by operationId, with `since`, `sunset`, `successor`, `docs` and `brownouts`. The file replaces all of them.",
		rule: rule{read: (*decoder).deprecations, show: deprecationValues}},
	{name: "log.level", about: "Lines below this level are not written: `debug`, `info`, `warn` or `error`. The line of a request has the level info.",
		rule: scalar(text, orList("debug", "info", "warn", "error"), func(c *Config) *slog.Level { return &c.Log.Level }, parseLevel, levelText)},
	{name: "log.format", restart: true, about: "`text`, `json`, or `auto`: text on a terminal and JSON elsewhere.",
		rule: choice(func(c *Config) *string { return &c.Log.Format }, LogAuto, LogText, LogJSON)},
	{name: "log.file", restart: true, about: "File to which the log is appended; empty: standard output. Put it on another disk than the database: a log that fills the disk of the database stops every write. SIGHUP opens it again, after it was renamed.",
		rule: file(func(c *Config) *string { return &c.Log.File })},
	{name: "log.max_size", about: "Largest size of `log.file` in MiB; 0 for no bound. Before the file becomes larger, `.old` is added to its name, and it replaces the previous file of that name: the log takes at most twice as much.",
		rule: whole(func(c *Config) *int { return &c.Log.MaxSize }, " of MiB", 0, maxLogSize)},
}

// groups are the groups of settings, each with an example.
var groups = map[string]string{
	"timeouts": "{read_header: 5s}",
	"penalty":  "{strikes: 10, grace: 2s, decay: 10s, ban: 1m, growth: 2, max: 24h, forgive: 24h}",
	"deny":     "{networks: [192.0.2.0/24], owners: [ann]}",
	"allow":    "{networks: [192.0.2.0/24], owners: [ann]}",
	"log":      "{level: info}",
}
