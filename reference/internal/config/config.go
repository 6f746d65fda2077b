package config

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A Config is what the server runs by. [Load] makes it; it must
// then not be changed, and is safe for concurrent use.
type Config struct {
	Listen      string // host and port of the API
	AdminListen string // host and port of the admin listener; empty: there is none
	AdminToken  Secret // bearer token of the admin listener; empty: none is asked for

	Database string   // a SQLite file
	Redis    []string // redis:// or rediss:// URLs; none: limits are kept in this process

	TLSCert string // file with the certificate chain in PEM; empty: plain HTTP
	TLSKey  string // file with its private key in PEM; empty exactly if TLSCert is

	MaxConnections           int           // open at once, on each listener; at least 1
	MaxConnectionsPerNetwork int           // of them, of an IPv4 address or an IPv6 /64; at least 1
	DrainDelay               time.Duration // from the signal to the closing of the listeners; 0 to an hour

	Plans     Plans             // those that a key can have
	Anonymous *ratelimit.Plan   // of a network, for callers without a valid key
	Uncharged *ratelimit.Plan   // of requests that are not charged; never bans
	Penalty   ratelimit.Penalty // of the plans of keys and of Anonymous
	OnFailure failover.Mode     // what happens to requests while Redis does not answer

	DraftHeaders   bool           // RateLimit and RateLimit-Policy beside X-RateLimit-*
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	CORSOrigins    []string       // whose pages may call the API

	Deprecations map[string]Deprecation // by operationId

	places map[string]string // by setting: where its value is from, unless it is the default
}

// A Deprecation says when an operation is deprecated and when it is removed.
type Deprecation = deprecation.Options

// Default returns the settings of a server without a file, variables or flags.
func Default() *Config {
	c := &Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:9090",
		Database:    "petstore.db",
		Penalty:     ratelimit.DefaultPenalty(),
		OnFailure:   failover.FailLocal,

		MaxConnections:           8192,
		MaxConnectionsPerNetwork: 256,

		Deprecations: map[string]Deprecation{
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

// TLS reports whether the API is served over TLS.
func (c *Config) TLS() bool { return c.TLSCert != "" }

// Where tells where a setting was given, for messages about it, as in
// "petstore.yaml:7:14", "PETSTORE_LISTEN" or "--listen". A setting is named as in
// the file, with the names of the groups it is in: "plans.free". One that was not
// given is where its group is, or "default".
func (c *Config) Where(setting string) string {
	for {
		if place, ok := c.places[setting]; ok {
			return place
		}
		end := strings.LastIndexAny(setting, ".[")
		if end < 0 {
			return "default"
		}
		setting = setting[:end]
	}
}

// CheckOperations returns an error that names every deprecated operation which
// is not among those known, and where it was given.
func (c *Config) CheckOperations(known ...string) error {
	var r report
	for _, id := range slices.Sorted(maps.Keys(c.Deprecations)) {
		if !slices.Contains(known, id) {
			setting := "deprecations." + id
			r.add(place{text: c.Where(setting)}, setting, "there is no such operation; the operations are %s", strings.Join(known, ", "))
		}
	}
	return r.err()
}
