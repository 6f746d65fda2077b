// Package config reads the settings of the server: a YAML file, the environment and
// the command line. A flag overrides the environment, the environment overrides the
// file, and the file overrides the default.
//
//	source := config.NewSource(flags, os.Environ())
//	c, err := source.Load()
//
// All are read strictly. Mistakes are an unknown setting or variable, a value of the wrong
// type or out of its range, a setting that occurs twice, and settings that contradict
// each other. The error names each mistake with its place, and says how to correct it:
//
//	petstore.yaml:7:24: plans.free[1]: quota "1000/dya": the window must be second, minute, hour, day, month, or a duration such as 30s or 168h
//	PETSTORE_LISTEN: must be host and port such as 127.0.0.1:8080, got "8080"
//
// To change its settings while it runs, a server reads the [Source] again, compares the
// result with the settings in force, and keeps those of them that need a restart:
//
//	next, err := source.Load()
//	...
//	merged, err := current.After(next)
//	...
//	applied, restart := current.Changes(next)
//
// A [Config] holds checked values, such as plans. No error repeats a token or an
// address of a database.
package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
)

// A Config holds the settings, which [Config.settings] declares and describes.
// [Source.Load] returns it. It must not be changed after that, and is safe for concurrent
// use.
type Config struct {
	Listen      string
	AdminListen string // empty: there is no admin listener
	AdminToken  string // empty: no token is required

	Database  string // may have a password
	Migrate   string // MigrateAuto or MigrateManual
	FirstKey  bool
	Redis     []string // URLs; empty: usage is counted in this process
	UsageFile string   // empty: beside the SQLite file

	HTTP         httpserver.Options // of the API's server, as far as they are settings
	StoreTimeout time.Duration      // for the database, in one request

	Plans       Plans
	Anonymous   *ratelimit.Plan
	Uncharged   *ratelimit.Plan   // never bans
	Penalty     ratelimit.Penalty // of Plans and Anonymous
	RedisShares bool
	OnFailure   string // "local", "open" or "closed"

	DraftHeaders bool
	CORSOrigins  []string

	Deprecations map[string]deprecation.Options // by operationId
	Stability    map[string]string              // by operationId: experimental or beta
	Servers      Servers

	Log Log

	places  map[string]place // by setting: where it was set; none for a default
	warning string
}

// Servers are the public base addresses of the service; empty: not shown.
type Servers struct{ Production, Staging string }

// Log is how the server logs.
type Log struct {
	Level  slog.Level
	Format string // LogAuto, LogText or LogJSON
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

// UsagePath returns the file in which a server without Redis keeps usage. It is empty if
// the database is PostgreSQL and usage_file is not set, which [Source.Load] refuses.
func (c *Config) UsagePath() string {
	if c.UsageFile != "" {
		return c.UsageFile
	}
	return database.UsagePath(c.Database)
}

// TLS reports whether the API is served over TLS.
func (c *Config) TLS() bool { return c.HTTP.CertFile != "" }

// LogWarning logs that other users can read a secret in the settings file, if they can.
func (c *Config) LogWarning(logger *slog.Logger) {
	if c.warning != "" {
		logger.Warn(c.warning)
	}
}

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

// Client returns what finds the address of a client.
func (c *Config) Client() (*clientip.Source, error) {
	if len(c.HTTP.TrustedProxies) == 0 {
		return clientip.FromRemoteAddr(), nil
	}
	return clientip.FromXForwardedFor(c.HTTP.TrustedProxies)
}

// Document returns what the settings say about the OpenAPI document.
func (c *Config) Document() openapi.Options {
	return openapi.Options{
		Deprecations: c.Deprecations, Stability: c.Stability,
		Production: c.Servers.Production, Staging: c.Servers.Staging,
	}
}

// CheckOperations returns an error that names each operation in the settings that is not
// known, and where it was set: one of deprecations that is not among deprecatable, or one
// of stability that is not among all.
func (c *Config) CheckOperations(deprecatable, all []string) error {
	var r report
	for id := range c.Deprecations {
		if !slices.Contains(deprecatable, id) {
			c.wrong(&r, "deprecations."+id, "unknown operation; the operations that can be deprecated are %s", strings.Join(deprecatable, ", "))
		}
	}
	for id := range c.Stability {
		if !slices.Contains(all, id) {
			c.wrong(&r, "stability."+id, "unknown operation; the operations are %s", strings.Join(all, ", "))
		}
	}
	return r.err()
}
