package config

import "reflect"

// RestartNeeded returns the settings in which c differs from those of a running
// server and which it takes up only when it starts: its listeners and what it
// keeps data in. All others, such as the plans, the penalty and the
// deprecations, are for the handler of the API, which can be made anew while the
// server runs.
func (c *Config) RestartNeeded(running *Config) []string {
	var names []string
	for _, s := range []struct {
		name string
		of   func(*Config) any
	}{
		{"listen", func(c *Config) any { return c.Listen }},
		{"admin_listen", func(c *Config) any { return c.AdminListen }},
		{"admin_token", func(c *Config) any { return c.AdminToken }},
		{"database", func(c *Config) any { return c.Database }},
		{"redis", func(c *Config) any { return c.Redis }},
		{"tls_cert", func(c *Config) any { return c.TLSCert }},
		{"tls_key", func(c *Config) any { return c.TLSKey }},
		{"max_connections", func(c *Config) any { return c.MaxConnections }},
		{"max_connections_per_network", func(c *Config) any { return c.MaxConnectionsPerNetwork }},
		{"drain_delay", func(c *Config) any { return c.DrainDelay }},
		{"on_redis_failure", func(c *Config) any { return c.OnFailure }},
	} {
		if !reflect.DeepEqual(s.of(c), s.of(running)) {
			names = append(names, s.name)
		}
	}
	return names
}
