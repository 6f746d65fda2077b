package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

// Flags are the settings of the command line. Nil: the flag was not given. The tags
// are for kong: a command embeds Flags and passes it to [NewSource].
type Flags struct {
	Config      *string `name:"config" placeholder:"FILE" help:"YAML file with settings ($$PETSTORE_CONFIG)."`
	Listen      *string `name:"listen" placeholder:"HOST:PORT" help:"Address of the API ($$PETSTORE_LISTEN)."`
	AdminListen *string `name:"admin-listen" placeholder:"HOST:PORT" help:"Address of the admin listener; empty turns it off ($$PETSTORE_ADMIN_LISTEN)."`
	Database    *string `name:"database" placeholder:"FILE|URL" help:"SQLite file for pets and keys, or a postgres:// URL; a password is safer in the variable ($$PETSTORE_DATABASE)."`
	Migrate     *string `name:"migrate" placeholder:"auto|manual" help:"Whether an older schema of the database is upgraded, or refused until petstore migrate was run. Default auto ($$PETSTORE_MIGRATE)."`
	Redis       *string `name:"redis" placeholder:"URL,..." help:"Redis through which servers share limits; several URLs for a cluster ($$PETSTORE_REDIS)."`
	UsageFile   *string `name:"usage-file" placeholder:"FILE" help:"File that keeps usage and bans without Redis; by default beside the SQLite file ($$PETSTORE_USAGE_FILE)."`
	TLSCert     *string `name:"tls-cert" placeholder:"FILE" help:"PEM file with a certificate chain; turns on TLS ($$PETSTORE_TLS_CERT)."`
	TLSKey      *string `name:"tls-key" placeholder:"FILE" help:"PEM file with its private key ($$PETSTORE_TLS_KEY)."`

	MaxConnections           *string `name:"max-connections" placeholder:"N" help:"Maximum number of open connections; to accept one more, the server closes the one that has been idle longest. Default 8192 ($$PETSTORE_MAX_CONNECTIONS)."`
	MaxConnectionsPerNetwork *string `name:"max-connections-per-network" placeholder:"N" help:"Maximum number of connections from an IPv4 address or IPv6 /64; loopback addresses and trusted proxies are exempt. Default 256 ($$PETSTORE_MAX_CONNECTIONS_PER_NETWORK)."`
	DrainDelay               *string `name:"drain-delay" placeholder:"DURATION" help:"After SIGTERM, keep serving for this long while /readyz answers 503, so that load balancers notice. Default 0s ($$PETSTORE_DRAIN_DELAY)."`

	LogLevel   *string `name:"log-level" placeholder:"LEVEL" help:"Lowest level of the log: debug, info, warn or error. Default info ($$PETSTORE_LOG_LEVEL)."`
	LogFormat  *string `name:"log-format" placeholder:"FORMAT" help:"Format of the log: text, json, or auto for text on a terminal and JSON elsewhere. Default auto ($$PETSTORE_LOG_FORMAT)."`
	LogFile    *string `name:"log-file" placeholder:"FILE" help:"File for the log instead of standard output. Keep it on another disk than the database. SIGHUP opens it again ($$PETSTORE_LOG_FILE)."`
	LogMaxSize *string `name:"log-max-size" placeholder:"MIB" help:"Largest size of that file in MiB, at which .old is added to its name; 0 for no bound. Default 1024 ($$PETSTORE_LOG_MAX_SIZE)."`
}

// variable returns the name in the environment of a setting.
func variable(name string) string {
	return "PETSTORE_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// flagName returns the flag of a setting.
func flagName(name string) string {
	return "--" + strings.NewReplacer("_", "-", ".", "-").Replace(name)
}

// applyOverrides sets the values of the environment, then those of the flags.
func (c *Config) applyOverrides(flags Flags, lookupEnv func(string) (string, bool), r *report) {
	for _, o := range settings {
		if !o.hasVariable() {
			continue
		}
		value, from, err := lookup(o, flags, lookupEnv)
		if from == "" {
			continue
		}
		c.places[o.name] = from
		if err == nil {
			err = o.set(c, value)
		}
		if err != nil {
			r.add(place{text: from}, o.name, "%v", err)
		}
	}
}

// lookup returns the value of a setting that a flag or the environment sets, and the flag
// or variable that it is from; "" if there is none.
func lookup(s setting, flags Flags, lookupEnv func(string) (string, bool)) (value, from string, err error) {
	if s.flag != nil {
		if v := s.flag(flags); v != nil {
			return *v, flagName(s.name), nil
		}
	}
	return lookupVariable(s, lookupEnv)
}

// UsagePath returns the file in which a server without Redis keeps usage. It is empty if
// the database is PostgreSQL and usage_file is not set, which [Source.Load] refuses.
func (c *Config) UsagePath() string {
	if c.UsageFile != "" {
		return c.UsageFile
	}
	return database.UsagePath(c.Database)
}

func (c *Config) setDatabase(text string) error {
	c.Database = text
	return database.Check(text)
}

func (c *Config) setMigrate(text string) error {
	if text != MigrateAuto && text != MigrateManual {
		return fmt.Errorf("must be auto or manual, got %q", text)
	}
	c.Migrate = text
	return nil
}

func (c *Config) setUsageFile(text string) error {
	c.UsageFile = text
	if strings.ContainsRune(text, 0) {
		return errors.New("must not contain NUL")
	}
	return nil
}

// checkUsageFile adds a mistake if a server would have no place for its usage, or would
// use a file that is something else.
func (c *Config) checkUsageFile(r *report) {
	if len(c.Redis) > 0 {
		return
	}
	wrong := func(setting, format string, args ...any) {
		r.add(place{text: c.Where(setting)}, setting, format, args...)
	}
	switch {
	case c.UsagePath() == "":
		wrong("database", "PostgreSQL does not keep usage and bans; set redis, which several servers can share, "+
			"or usage_file to a file of a single server")
	case c.UsageFile != "" && c.UsageFile == c.Database:
		wrong("usage_file", "%s is the database; choose another file", c.UsageFile)
	}
}

func databaseValues(c *Config) []value {
	return []value{{name: "database", text: c.Database, display: database.Redacted(c.Database)}}
}
