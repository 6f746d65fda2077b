package config

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/database"
)

// A Config holds the settings. [Source.Load] returns it. It must not be changed after that,
// and is safe for concurrent use.
type Config struct {
	Listen      string // host and port of the API
	AdminListen string // host and port of the admin listener; empty: there is none
	AdminToken  Secret // bearer token of the admin listener; empty: no token is required

	Database  string   // a SQLite file, or a URL of PostgreSQL, which can have a password
	Migrate   string   // MigrateAuto or MigrateManual
	FirstKey  bool     // whether the server makes a key if there was never one
	Redis     []string // redis:// or rediss:// URLs; empty: usage is counted in this process
	UsageFile string   // where usage is kept then; empty: beside the SQLite file

	TLSCert string // file with the certificate chain in PEM; empty: plain HTTP
	TLSKey  string // file with its private key in PEM; empty exactly if TLSCert is

	MaxConnections           int           // open connections on each listener; at least 1
	MaxConnectionsPerNetwork int           // of them from one IPv4 address or IPv6 /64; at least 1
	DrainDelay               time.Duration // from the signal until the listeners close; 0 to an hour
	Timeouts                 Timeouts

	Deny  AccessList // refused with 403, even if Allow names them too
	Allow AccessList // counted, and neither limited nor banned

	Plans       Plans             // the plans that a key can have
	Anonymous   *ratelimit.Plan   // plan of a network, for callers without a valid key
	Uncharged   *ratelimit.Plan   // plan of requests that are not charged; never bans
	Penalty     ratelimit.Penalty // penalty of Plans and Anonymous
	RedisShares bool              // units of busy subjects are taken from Redis in advance
	OnFailure   string            // "local", "open" or "closed": what happens to requests while Redis does not answer

	DraftHeaders   bool           // RateLimit and RateLimit-Policy beside X-RateLimit-*
	TrustedProxies []netip.Prefix // X-Forwarded-For from these is trusted
	CORSOrigins    []string       // pages of these origins may call the API

	Deprecations map[string]deprecation.Options // by operationId

	Log Log

	places map[string]place // by setting: where it was set; none for a default
}

// Timeouts are how long parts of a request may take, each from a millisecond to an hour.
type Timeouts struct {
	ReadHeader time.Duration // for the header section
	Read       time.Duration // for the whole request
	Write      time.Duration // from the end of the header section to that of the response
	Idle       time.Duration // between two requests of a connection
	Store      time.Duration // for the database; then the answer is 503
	Drain      time.Duration // for running requests when the server stops
}

// An AccessList names clients by their network, and by the owner of a valid key that they
// send.
type AccessList struct {
	Networks []netip.Prefix
	Owners   []string
}

// Log is how the server logs.
type Log struct {
	Level   slog.Level // lines below it are not written
	Format  string     // auto, text or json
	File    string     // empty: standard output
	MaxSize int        // of File in MiB; 0: no bound
}

// The formats of the log. LogAuto is text on a terminal and JSON elsewhere.
const (
	LogAuto = "auto"
	LogText = "text"
	LogJSON = "json"
)

// The ways to upgrade the schema of the database.
const (
	MigrateAuto   = "auto"   // whatever opens the database does
	MigrateManual = "manual" // only petstore migrate does
)

// Default returns the settings of a server without a file, variables and flags.
func Default() *Config {
	c := &Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:9090",
		Database:    "petstore.db",
		Migrate:     MigrateAuto,
		FirstKey:    true,
		Penalty:     ratelimit.DefaultPenalty(),
		OnFailure:   "local",

		MaxConnections:           8192,
		MaxConnectionsPerNetwork: 256,

		Timeouts: Timeouts{
			ReadHeader: 5 * time.Second, Read: 15 * time.Second, Write: 30 * time.Second, Idle: 2 * time.Minute,
			Store: 10 * time.Second, Drain: 25 * time.Second,
		},
		Log: Log{Level: slog.LevelInfo, Format: LogAuto, MaxSize: 1024},

		Deprecations: map[string]deprecation.Options{
			"getPet": {
				Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
				Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
				Successor: "/v1/pets?status=available",
			},
		},
	}
	c.setDefaultPlans()
	return c
}

// UsagePath returns the file in which a server without Redis keeps usage. It is empty if
// the database is PostgreSQL and usage_file is not set, which [Source.Load] refuses.
func (c *Config) UsagePath() string {
	if c.UsageFile != "" {
		return c.UsageFile
	}
	return database.UsagePath(c.Database)
}

// TLS reports whether the API is served over TLS.
func (c *Config) TLS() bool { return c.TLSCert != "" }

// Where returns where a setting was set: "petstore.yaml:7:14", "PETSTORE_LISTEN",
// "--listen", or "default". A setting is named as in the file, after the groups that
// it is in: "plans.free". If only its group was set, Where returns the place of the
// group.
func (c *Config) Where(setting string) string { return c.place(setting).String() }

func (c *Config) place(setting string) place {
	for {
		if at, ok := c.places[setting]; ok {
			return at
		}
		end := strings.LastIndexAny(setting, ".[")
		if end < 0 {
			return place{text: notSet}
		}
		setting = setting[:end]
	}
}

// Errorf returns an error about a setting. Its text begins with the place and the
// name of the setting.
func (c *Config) Errorf(setting, format string, args ...any) error {
	return fmt.Errorf(label(c.Where(setting), setting)+": "+format, args...)
}

// CheckOperations returns an error that names each deprecated operation that is not
// known, and where it was set.
func (c *Config) CheckOperations(known ...string) error {
	var r report
	for _, id := range slices.Sorted(maps.Keys(c.Deprecations)) {
		if !slices.Contains(known, id) {
			setting := "deprecations." + id
			c.wrong(&r, setting, "unknown operation; the operations that can be deprecated are %s", strings.Join(known, ", "))
		}
	}
	return r.err()
}

// A Secret is text that does not show by accident: it prints, logs and encodes as
// "[redacted]", or as nothing if it is empty.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]", or "" if s is empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// Format writes what String returns, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText returns what String returns. It also serves JSON and log/slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
