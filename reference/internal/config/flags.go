package config

import (
	"strings"
)

// Flags are the settings that the command line can give; nil is one that it did
// not. The tags are for kong, so that a command embeds Flags and passes it on to
// [Load].
type Flags struct {
	Config      *string `name:"config" placeholder:"FILE" help:"Read settings from this YAML file ($$PETSTORE_CONFIG)."`
	Listen      *string `name:"listen" placeholder:"HOST:PORT" help:"Serve the API here ($$PETSTORE_LISTEN)."`
	AdminListen *string `name:"admin-listen" placeholder:"HOST:PORT" help:"Serve health, profiles and bans here; empty for nowhere ($$PETSTORE_ADMIN_LISTEN)."`
	Database    *string `name:"database" placeholder:"FILE" help:"Keep pets and keys in this SQLite file ($$PETSTORE_DATABASE)."`
	Redis       *string `name:"redis" placeholder:"URL,..." help:"Share limits through Redis ($$PETSTORE_REDIS)."`
	TLSCert     *string `name:"tls-cert" placeholder:"FILE" help:"Serve the API over TLS with this certificate chain ($$PETSTORE_TLS_CERT)."`
	TLSKey      *string `name:"tls-key" placeholder:"FILE" help:"The certificate's private key ($$PETSTORE_TLS_KEY)."`
}

// An outside setting can be given outside the file as well.
type outside struct {
	name string // in the file
	flag func(Flags) *string
	set  func(c *Config, text string) error
}

// noFlag is for what other users of the machine must not see in the list of
// processes.
func noFlag(Flags) *string { return nil }

var outsiders = []outside{
	{"listen", func(f Flags) *string { return f.Listen }, (*Config).setListen},
	{"admin_listen", func(f Flags) *string { return f.AdminListen }, (*Config).setAdminListen},
	{"admin_token", noFlag, (*Config).setAdminToken},
	{"database", func(f Flags) *string { return f.Database }, (*Config).setDatabase},
	{"redis", func(f Flags) *string { return f.Redis }, (*Config).setRedis},
	{"tls_cert", func(f Flags) *string { return f.TLSCert }, (*Config).setTLSCert},
	{"tls_key", func(f Flags) *string { return f.TLSKey }, (*Config).setTLSKey},
}

// variable returns the name in the environment of a setting.
func variable(name string) string { return "PETSTORE_" + strings.ToUpper(name) }

// flagName returns the flag of a setting.
func flagName(name string) string { return "--" + strings.ReplaceAll(name, "_", "-") }

// overlay sets what the environment gives, and over it what the flags give.
func (c *Config) overlay(flags Flags, lookupEnv func(string) (string, bool), r *report) {
	for _, o := range outsiders {
		value, from := "", ""
		if v, ok := lookupEnv(variable(o.name)); ok {
			value, from = v, variable(o.name)
		}
		if v := o.flag(flags); v != nil {
			value, from = *v, flagName(o.name)
		}
		if from == "" {
			continue
		}
		c.places[o.name] = from
		if err := o.set(c, value); err != nil {
			r.add(place{text: from}, o.name, "%v", err)
		}
	}
}
