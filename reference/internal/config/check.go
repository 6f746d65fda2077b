package config

import (
	"slices"
	"time"
)

// Check returns an error for settings that contradict each other, such as a public address
// without TLS. A server refuses them.
func (c *Config) Check() error {
	var r report
	c.check(&r)
	return r.err()
}

// check adds a mistake for settings that contradict each other.
func (c *Config) check(r *report) {
	wrong := func(setting, format string, args ...any) {
		r.add(place{text: c.Where(setting)}, setting, format, args...)
	}
	switch {
	case c.TLSCert == "" && c.TLSKey != "":
		wrong("tls_key", "needs tls_cert, which is not set")
	case c.TLSCert != "" && c.TLSKey == "":
		wrong("tls_cert", "needs tls_key, which is not set")
	case !c.TLS() && !isLoopback(c.Listen) && len(c.TrustedProxies) == 0:
		wrong("listen", "other machines can reach %s, and API keys would cross the network unencrypted; "+
			"set tls_cert and tls_key, or name the proxies that terminate TLS in trusted_proxies, or listen on 127.0.0.1", c.Listen)
	}
	c.checkTimeouts(r)
	c.checkAccess(r)
	c.checkUsageFile(r)
	if c.AdminListen == "" {
		return
	}
	if !isLoopback(c.AdminListen) && c.AdminToken == "" {
		wrong("admin_listen", "other machines can reach %s; set admin_token (%s) or listen on 127.0.0.1",
			c.AdminListen, variable("admin_token"))
	}
	if c.AdminListen == c.Listen && !anyPort(c.Listen) {
		setting := "admin_listen"
		if c.places[setting] == "" {
			setting = "listen" // one of them was given
		}
		wrong(setting, "the API and the admin listener cannot both use %s; change one of them", c.Listen)
	}
}

// checkTimeouts adds a mistake for timeouts of which one never applies.
func (c *Config) checkTimeouts(r *report) {
	t := c.Timeouts
	if t.ReadHeader > t.Read {
		c.mustBeShorter(r, "timeouts.read_header", t.ReadHeader, "timeouts.read", t.Read)
	}
	if t.Store >= t.Write { // the 503 could not be sent
		c.mustBeShorter(r, "timeouts.store", t.Store, "timeouts.write", t.Write)
	}
}

// mustBeShorter adds the mistake to the setting that was set.
func (c *Config) mustBeShorter(r *report, less string, lessIs time.Duration, more string, moreIs time.Duration) {
	if _, set := c.places[less]; set {
		r.add(place{text: c.Where(less)}, less, "must be shorter than %s, which is %s", more, ShortDuration(moreIs))
	} else {
		r.add(place{text: c.Where(more)}, more, "must be longer than %s, which is %s", less, ShortDuration(lessIs))
	}
}

// checkAccess adds a mistake for clients that are denied and allowed.
func (c *Config) checkAccess(r *report) {
	for _, p := range c.Allow.Networks {
		if slices.Contains(c.Deny.Networks, p) {
			r.add(place{text: c.Where("allow.networks")}, "allow.networks", "%v is in deny.networks too; remove one", p)
		}
	}
	for _, o := range c.Allow.Owners {
		if slices.Contains(c.Deny.Owners, o) {
			r.add(place{text: c.Where("allow.owners")}, "allow.owners", "%q is in deny.owners too; remove one", o)
		}
	}
}
