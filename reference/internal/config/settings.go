package config

import (
	"strconv"
	"strings"
)

// A setting is what the file, the environment or a flag can set. Its name is that in
// the file, after the group that it is in: "penalty.strikes".
type setting struct {
	name  string
	about string // for docs/CONFIGURATION.md

	kind    kind                               // in the file
	set     func(c *Config, text string) error // nil: the decoder has a function for it
	example string                             // what the value must be; "": text

	flag    func(Flags) *string // nil: there is no flag
	varOnly bool                // there is no flag, but a variable

	values func(*Config) []value
	keep   func(to, from *Config) // keeps the value at a reload; nil: a reload takes up a change
}

// hasVariable reports whether the environment can set it.
func (s setting) hasVariable() bool { return s.flag != nil || s.varOnly }

// group returns the first part of the name.
func (s setting) group() string {
	group, _, _ := strings.Cut(s.name, ".")
	return group
}

var settings = []setting{
	{name: "listen", kind: text, set: (*Config).setListen, example: "host and port such as 127.0.0.1:8080",
		about:  "Address of the API. An address that other machines can reach needs TLS (`tls_cert` and `tls_key`), or proxies that terminate it (`trusted_proxies`). Port 0 takes a free port.",
		flag:   func(f Flags) *string { return f.Listen },
		values: one("listen", func(c *Config) string { return c.Listen }),
		keep:   func(to, from *Config) { to.Listen = from.Listen }},
	{name: "admin_listen", kind: text, set: (*Config).setAdminListen, example: "host and port such as 127.0.0.1:9090",
		about:  "Address of the admin listener; empty turns it off. An address that other machines can reach needs `admin_token`.",
		flag:   func(f Flags) *string { return f.AdminListen },
		values: one("admin_listen", func(c *Config) string { return c.AdminListen }),
		keep:   func(to, from *Config) { to.AdminListen = from.AdminListen }},
	{name: "admin_token", kind: text, set: (*Config).setAdminToken, varOnly: true,
		about:  "Bearer token of the admin listener, of at least 16 characters. It has no flag, because other users of the machine can see flags.",
		values: secret("admin_token", func(c *Config) string { return c.AdminToken.Reveal() }),
		keep:   func(to, from *Config) { to.AdminToken = from.AdminToken }},
	{name: "tls_cert", kind: text, set: (*Config).setTLSCert,
		about:  "PEM file with the certificate chain. It turns on TLS. The server also reads the files again when they change.",
		flag:   func(f Flags) *string { return f.TLSCert },
		values: one("tls_cert", func(c *Config) string { return c.TLSCert })},
	{name: "tls_key", kind: text, set: (*Config).setTLSKey,
		about:  "PEM file with the private key of the certificate.",
		flag:   func(f Flags) *string { return f.TLSKey },
		values: one("tls_key", func(c *Config) string { return c.TLSKey })},
	{name: "max_connections", kind: number, set: (*Config).setMaxConnections,
		about:  "Maximum number of open connections to the API. To accept one more, the server closes the one that has been idle longest.",
		flag:   func(f Flags) *string { return f.MaxConnections },
		values: one("max_connections", func(c *Config) string { return strconv.Itoa(c.MaxConnections) })},
	{name: "max_connections_per_network", kind: number, set: (*Config).setMaxConnectionsPerNetwork,
		about:  "How many of them one IPv4 address or IPv6 /64 may have. Loopback addresses and `trusted_proxies` are exempt.",
		flag:   func(f Flags) *string { return f.MaxConnectionsPerNetwork },
		values: one("max_connections_per_network", func(c *Config) string { return strconv.Itoa(c.MaxConnectionsPerNetwork) })},
	{name: "drain_delay", kind: text, set: (*Config).setDrainDelay, example: "a duration such as 10s",
		about:  "How long the server keeps serving after SIGTERM while `/readyz` answers 503, so that load balancers notice. From 0s to 1h.",
		flag:   func(f Flags) *string { return f.DrainDelay },
		values: one("drain_delay", func(c *Config) string { return short(c.DrainDelay) })},
	{name: "timeouts.read_header", kind: text, example: "a duration such as 10s",
		set:    func(c *Config, text string) error { return setTimeout(&c.Timeouts.ReadHeader, text) },
		about:  "How long a client may take to send the header section.",
		values: one("timeouts.read_header", func(c *Config) string { return short(c.Timeouts.ReadHeader) })},
	{name: "timeouts.read", kind: text, example: "a duration such as 10s",
		set:    func(c *Config, text string) error { return setTimeout(&c.Timeouts.Read, text) },
		about:  "How long a client may take to send the whole request.",
		values: one("timeouts.read", func(c *Config) string { return short(c.Timeouts.Read) })},
	{name: "timeouts.write", kind: text, example: "a duration such as 10s",
		set:    func(c *Config, text string) error { return setTimeout(&c.Timeouts.Write, text) },
		about:  "How long the response may take, from the end of the header section on.",
		values: one("timeouts.write", func(c *Config) string { return short(c.Timeouts.Write) })},
	{name: "timeouts.idle", kind: text, example: "a duration such as 10s",
		set:    func(c *Config, text string) error { return setTimeout(&c.Timeouts.Idle, text) },
		about:  "How long a connection may stay open between two requests.",
		values: one("timeouts.idle", func(c *Config) string { return short(c.Timeouts.Idle) })},
	{name: "timeouts.store", kind: text, example: "a duration such as 10s",
		set:    func(c *Config, text string) error { return setTimeout(&c.Timeouts.Store, text) },
		about:  "How long the database may take for one request. After that the answer is 503. It must be shorter than `timeouts.write`.",
		values: one("timeouts.store", func(c *Config) string { return short(c.Timeouts.Store) })},
	{name: "timeouts.drain", kind: text, example: "a duration such as 10s",
		set:    func(c *Config, text string) error { return setTimeout(&c.Timeouts.Drain, text) },
		about:  "How long the server waits for running requests when it stops.",
		values: one("timeouts.drain", func(c *Config) string { return short(c.Timeouts.Drain) })},
	{name: "database", kind: text, set: (*Config).setDatabase,
		about:  "SQLite file for pets and keys.",
		flag:   func(f Flags) *string { return f.Database },
		values: one("database", func(c *Config) string { return c.Database }),
		keep:   func(to, from *Config) { to.Database = from.Database }},
	{name: "redis", kind: text, set: (*Config).setRedis,
		about:  "Where usage and bans are counted: empty for this process, or `redis://host:6379` for all servers together; several URLs, separated by commas, for a cluster.",
		flag:   func(f Flags) *string { return f.Redis },
		values: secret("redis", func(c *Config) string { return strings.Join(c.Redis, ",") }),
		keep:   func(to, from *Config) { to.Redis = from.Redis }},
	{name: "on_redis_failure",
		about:  "What happens to requests while Redis does not answer: `local` (each server limits by itself), `open` (they are not limited) or `closed` (they get 503).",
		values: one("on_redis_failure", func(c *Config) string { return c.OnFailure.String() }),
		keep:   func(to, from *Config) { to.OnFailure = from.OnFailure }},
	{name: "plans",
		about:  "The plans that a key can have, each with up to four quotas, or `custom` if each key has its own. The file replaces all of them.",
		values: planValues},
	{name: "anonymous",
		about:  "Quotas of callers without a valid key, for each network.",
		values: many("anonymous", func(c *Config) []string { return quotaTexts(c.Anonymous) })},
	{name: "uncharged",
		about:  "Separate quotas of requests that are not charged, for each network (`/docs`, `/openapi.json` and CORS preflights) and each owner (`GET /v1/usage`). Reaching them never leads to a ban.",
		values: many("uncharged", func(c *Config) []string { return quotaTexts(c.Uncharged) })},
	{name: "penalty.strikes",
		about:  "More strikes than this start a ban. 0 turns bans off.",
		values: one("penalty.strikes", func(c *Config) string { return strconv.Itoa(c.Penalty.Strikes) })},
	{name: "penalty.grace",
		about:  "Requests that arrive within this time of the first denial are not strikes.",
		values: one("penalty.grace", func(c *Config) string { return short(c.Penalty.Grace) })},
	{name: "penalty.decay",
		about:  "The time in which one strike is forgotten.",
		values: one("penalty.decay", func(c *Config) string { return short(c.Penalty.Decay) })},
	{name: "penalty.ban",
		about:  "Length of the first ban.",
		values: one("penalty.ban", func(c *Config) string { return short(c.Penalty.Ban) })},
	{name: "penalty.growth",
		about:  "Each further ban is longer by this factor.",
		values: one("penalty.growth", func(c *Config) string { return strconv.Itoa(c.Penalty.Growth) })},
	{name: "penalty.max",
		about:  "Length of the longest ban.",
		values: one("penalty.max", func(c *Config) string { return short(c.Penalty.Max) })},
	{name: "penalty.forgive",
		about:  "Each such time without a ban undoes one step of growth.",
		values: one("penalty.forgive", func(c *Config) string { return short(c.Penalty.Forgive) })},
	{name: "draft_headers",
		about:  "Whether responses also have `RateLimit` and `RateLimit-Policy`, as in draft-ietf-httpapi-ratelimit-headers.",
		values: one("draft_headers", func(c *Config) string { return strconv.FormatBool(c.DraftHeaders) })},
	{name: "trusted_proxies",
		about:  "Networks of trusted proxies. Their `X-Forwarded-For` names the client.",
		values: many("trusted_proxies", func(c *Config) []string { return prefixTexts(c.TrustedProxies) })},
	{name: "cors_origins",
		about:  "Pages of these origins may call the API, such as `https://app.example`.",
		values: many("cors_origins", func(c *Config) []string { return c.CORSOrigins })},
	{name: "deny.networks",
		about:  "Clients in these networks get 403 `access_denied`, with or without a key. `deny` overrides `allow`.",
		values: many("deny.networks", func(c *Config) []string { return prefixTexts(c.Deny.Networks) })},
	{name: "deny.owners",
		about:  "Keys of these owners get 403 `access_denied`.",
		values: many("deny.owners", func(c *Config) []string { return c.Deny.Owners })},
	{name: "allow.networks",
		about:  "Clients in these networks are counted, and neither limited nor banned, with or without a key.",
		values: many("allow.networks", func(c *Config) []string { return prefixTexts(c.Allow.Networks) })},
	{name: "allow.owners",
		about:  "Keys of these owners are counted, and neither limited nor banned.",
		values: many("allow.owners", func(c *Config) []string { return c.Allow.Owners })},
	{name: "deprecations",
		about:  "Deprecated operations by operationId, with `since`, `sunset`, `successor`, `docs` and `brownouts`. The file replaces all of them.",
		values: deprecationValues},
	{name: "log.level", kind: text, set: (*Config).setLogLevel, example: "debug, info, warn or error",
		about:  "Lines below this level are not written: `debug`, `info`, `warn` or `error`. The line of a request has the level info.",
		flag:   func(f Flags) *string { return f.LogLevel },
		values: one("log.level", func(c *Config) string { return strings.ToLower(c.Log.Level.String()) })},
	{name: "log.format", kind: text, set: (*Config).setLogFormat, example: "auto, text or json",
		about:  "`text`, `json`, or `auto`: text on a terminal and JSON elsewhere.",
		flag:   func(f Flags) *string { return f.LogFormat },
		values: one("log.format", func(c *Config) string { return c.Log.Format }),
		keep:   func(to, from *Config) { to.Log.Format = from.Log.Format }},
	{name: "log.file", kind: text, set: (*Config).setLogFile,
		about:  "File to which the log is appended; empty: standard output. SIGHUP opens it again, after it was renamed.",
		flag:   func(f Flags) *string { return f.LogFile },
		values: one("log.file", func(c *Config) string { return c.Log.File }),
		keep:   func(to, from *Config) { to.Log.File = from.Log.File }},
	{name: "log.sample", kind: number, set: (*Config).setLogSample,
		about:  "Logs one in so many of the requests that were answered with a status below 400, and all others. The line of such a request has the attribute `sample`.",
		flag:   func(f Flags) *string { return f.LogSample },
		values: one("log.sample", func(c *Config) string { return strconv.Itoa(c.Log.Sample) })},
}
