package config

import (
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// A setting is declared once: flag, variable, settings file, example file and
// reference/docs/CONFIGURATION.md come from the declaration.
type setting struct {
	name    string // as in the file, after the group that it is in: "penalty.strikes"
	value          // where the Config has it, and how it is read
	initial string // the default, as a variable would set it
	flag    string // what the help shows as the value of its flag; empty: it has no flag
	restart bool   // a reload does not apply a change
	secret  bool   // it can hold a secret, so a variable can name a file with it
	about   string // whole sentences; the first of them is the help of the flag
}

// settings returns the declarations of all settings, in the order of the documents. They
// read and show the fields of c. The penalty comes before the plans, which contain it.
func (c *Config) settings() []setting {
	return []setting{
		{name: "listen", value: one(&c.Listen, parseAddress), initial: "127.0.0.1:8080", flag: "HOST:PORT", restart: true,
			about: "Address of the API. If other machines can reach it, it needs TLS (`tls_cert` and `tls_key`), or proxies that terminate it (`trusted_proxies`)."},
		{name: "admin_listen", value: one(&c.AdminListen, parseAddressOrNone), initial: "127.0.0.1:9090", flag: "HOST:PORT", restart: true,
			about: "Address of the admin listener; empty turns it off. If other machines can reach it, it needs `admin_token`."},
		{name: "admin_token", value: one(&c.AdminToken, parseToken), restart: true, secret: true,
			about: "Bearer token of the admin listener, of at least 16 characters."},
		{name: "tls_cert", value: one(&c.HTTP.CertFile, parseText), flag: "FILE",
			about: "PEM file with the certificate chain. It turns on TLS, which needs a restart. When the files change, the server reads them again."},
		{name: "tls_key", value: one(&c.HTTP.KeyFile, parseText), flag: "FILE",
			about: "PEM file with its private key."},
		{name: "max_connections", value: whole(&c.HTTP.MaxConns, 1, maxConnections), initial: "8192", flag: "N",
			about: "Maximum number of open connections to the API. To accept one more, the server closes the one that has been idle longest."},
		{name: "max_connections_per_network", value: whole(&c.HTTP.MaxConnsPerNetwork, 1, maxConnections), initial: "256", flag: "N",
			about: "Maximum number of connections from one IPv4 address or IPv6 /64. Loopback addresses and `trusted_proxies` are exempt."},
		{name: "drain_delay", value: period(&c.HTTP.DrainDelay, 0, time.Hour), initial: "0s", flag: "DURATION",
			about: "How long the server keeps serving after SIGTERM while `/readyz` answers 503, so that load balancers notice. It should be longer than the interval of their health checks."},
		{name: "timeouts.read_header", value: period(&c.HTTP.ReadHeaderTimeout, time.Millisecond, time.Hour), initial: "5s", restart: true,
			about: "How long a client may take to send the header section."},
		{name: "timeouts.read", value: period(&c.HTTP.ReadTimeout, time.Millisecond, time.Hour), initial: "15s", restart: true,
			about: "How long a client may take to send the whole request."},
		{name: "timeouts.write", value: period(&c.HTTP.WriteTimeout, time.Millisecond, time.Hour), initial: "30s", restart: true,
			about: "How long the response may take, from the end of the header section on."},
		{name: "timeouts.idle", value: period(&c.HTTP.IdleTimeout, time.Millisecond, time.Hour), initial: "2m", restart: true,
			about: "How long a connection may stay open between two requests."},
		{name: "timeouts.store", value: period(&c.StoreTimeout, time.Millisecond, time.Hour), initial: "10s",
			about: "How long the database may take for one request. After that the answer is 503. For writes to PostgreSQL, a change needs a restart. It must be shorter than `timeouts.write`."},
		{name: "timeouts.drain", value: period(&c.HTTP.DrainTimeout, time.Millisecond, time.Hour), initial: "25s",
			about: "How long the server waits for running requests when it stops."},
		{name: "database", value: one(&c.Database, parseDatabase), initial: "petstore.db", flag: "FILE|URL", restart: true, secret: true,
			about: "Where pets and keys are kept: a SQLite file, or PostgreSQL with a URL such as `postgres://user:password@host:5432/database`. What the URL leaves out comes from the variables of PostgreSQL, such as `PGPASSWORD` and `PGPASSFILE`. A flag shows a password to other users of the machine."},
		{name: "migrate", value: word(&c.Migrate, MigrateAuto, MigrateManual), initial: MigrateAuto, flag: "auto|manual", restart: true,
			about: "How an older schema of the database is upgraded: `auto` (whatever opens the database upgrades it) or `manual` (only `petstore migrate` does; the others refuse it)."},
		{name: "first_key", value: yesOrNo(&c.FirstKey), initial: "true", restart: true,
			about: "Whether the server makes a key with the plan `free`, and writes it to standard error, if the database has never held one. Turn it off where standard error is stored."},
		{name: "usage_file", value: one(&c.UsageFile, parseText), flag: "FILE", restart: true,
			about: "File that keeps usage and bans across restarts without `redis`. Empty: beside the SQLite file, under its name with `-usage`. With PostgreSQL, either `redis` or this must be set."},
		{name: "redis", value: one(&c.Redis, parseRedis), flag: "URL,...", restart: true, secret: true,
			about: "Where usage and bans are counted: empty for this process, or `redis://host:6379` for all servers together; several URLs, separated by commas, for a cluster."},
		{name: "on_redis_failure", value: word(&c.OnFailure, "local", "open", "closed"), initial: "local", restart: true,
			about: "What happens to requests while Redis does not answer: `local` (each server limits by itself), `open` (they are not limited) or `closed` (they get 503)."},
		{name: "redis_shares", value: yesOrNo(&c.RedisShares), initial: "false", restart: true,
			about: "Whether each server takes units of a subject with many requests from Redis in advance, and decides these requests in memory. [SCALING.md](SCALING.md#shares) says when to turn it on."},
		{name: "penalty.strikes", value: whole(&c.Penalty.Strikes, 0, maxStrikes), initial: "10",
			about: "More strikes than this start a ban. 0 turns bans off."},
		{name: "penalty.grace", value: period(&c.Penalty.Grace, 0, fixedwindow.MaxLength), initial: "2s",
			about: "Requests that arrive within this time of the first denial are not strikes."},
		{name: "penalty.decay", value: period(&c.Penalty.Decay, time.Second, fixedwindow.MaxLength), initial: "10s",
			about: "The time in which one strike is forgotten."},
		{name: "penalty.ban", value: period(&c.Penalty.Ban, 0, fixedwindow.MaxLength), initial: "1m",
			about: "Length of the first ban."},
		{name: "penalty.growth", value: whole(&c.Penalty.Growth, 0, maxStrikes), initial: "2",
			about: "Each further ban is longer by this factor."},
		{name: "penalty.max", value: period(&c.Penalty.Max, 0, fixedwindow.MaxLength), initial: "24h",
			about: "Length of the longest ban."},
		{name: "penalty.forgive", value: period(&c.Penalty.Forgive, 0, fixedwindow.MaxLength), initial: "24h",
			about: "Each such time without a ban undoes one step of growth."},
		{name: "plans", value: value{field: &c.Plans, read: c.readPlans},
			initial: "{free: [60/minute, 1000/day], pro: [300/minute, 10000/day], business: [1000/minute, 100000/day], enterprise: custom}",
			about:   "The plans that a key can have. A plan has up to four quotas, such as `60/minute`, `60/minute smooth 10`, `10000/month from 17`, `1000/day in Europe/Berlin`, or `10000/month soft`, which refuses nothing. Or it is `custom` if each key has its own, `suspended` to refuse every request, or `unlimited`."},
		{name: "anonymous", value: value{field: &c.Anonymous, read: c.readAnonymous}, initial: "[60/minute, 1000/day]",
			about: "Quotas of callers without a valid key, for each network."},
		{name: "uncharged", value: value{field: &c.Uncharged, read: c.readUncharged}, initial: "[600/minute]",
			about: "Quotas of requests that are not charged, for each network (files that need no key, CORS preflights, and requests with a key that cannot be checked) and each owner (`GET /v1/usage`). Reaching them never leads to a ban."},
		{name: "draft_headers", value: yesOrNo(&c.DraftHeaders), initial: "false",
			about: "Whether responses also have `RateLimit` and `RateLimit-Policy`, as in draft-ietf-httpapi-ratelimit-headers."},
		{name: "trusted_proxies", value: list(&c.HTTP.TrustedProxies, "networks such as [10.0.0.0/8]", parseProxies), initial: "[]",
			about: "Networks of trusted proxies. Their `X-Forwarded-For` names the client."},
		{name: "cors_origins", value: list(&c.CORSOrigins, "origins such as [https://app.example]", parseOrigin), initial: "[]",
			about: "Pages of these origins may call the API, such as `https://app.example`."},
		{name: "deprecations", value: value{field: &c.Deprecations, read: c.readDeprecations},
			initial: "{getPet: {since: 2025-12-05, sunset: 2030-12-05, successor: '/v1/pets?status=available'}}",
			about:   "Deprecated operations by operationId, with `since`, `sunset`, `successor`, `docs` and `brownouts`, which are periods such as `{start: 2030-11-05T12:00:00Z, end: 2030-11-05T13:00:00Z}`."},
		{name: "stability", value: value{field: &c.Stability, read: c.readStability}, initial: "{getUsage: beta}",
			about: "Operations, by operationId, that `/docs` and `/openapi.json` mark as `experimental` or `beta`."},
		{name: "servers.production", value: one(&c.Servers.Production, parseServer),
			about: "Public base address of the service, such as `https://pets.example/v1`, for `/openapi.json` and `/.well-known/api-catalog`."},
		{name: "servers.staging", value: one(&c.Servers.Staging, parseServer),
			about: "The same, for the service to test with."},
		{name: "log.level", value: one(&c.Log.Level, parseLevel), initial: "info", flag: "LEVEL",
			about: "Lines below this level are not written: `debug`, `info`, `warn` or `error`. The line of a request has the level info."},
		{name: "log.format", value: word(&c.Log.Format, LogAuto, LogText, LogJSON), initial: LogAuto, flag: "FORMAT", restart: true,
			about: "Format of the log: `text`, `json`, or `auto` for text on a terminal and JSON elsewhere."},
	}
}

// variable returns the variable of a setting.
func variable(name string) string {
	return "PETSTORE_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// fileVariable returns the variable that names a file with the value of a setting. Only
// settings that can hold a secret have one, because other processes of the user can see the
// environment, and because container and service managers pass secrets as files.
func fileVariable(name string) string { return variable(name) + "_FILE" }

// flagName returns the flag of a setting.
func flagName(name string) string {
	return "--" + strings.NewReplacer("_", "-", ".", "-").Replace(name)
}
