package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/duration"
)

// notSet is the place of a setting with its default.
const notSet = "default"

// A place is where a value was set: a line and a column of the file, both from 1, or
// a variable or flag.
type place struct {
	text         string // name of the file, the variable or the flag
	line, column int    // 0: not in a file
}

func (p place) String() string {
	if p.line == 0 {
		return p.text
	}
	return fmt.Sprintf("%s:%d:%d", p.text, p.line, p.column)
}

// A mistake is one thing that is wrong.
type mistake struct {
	at      place
	setting string // empty: the file as such
	what    string
}

func (m mistake) Error() string { return label(m.at.String(), m.setting) + ": " + m.what }

// label returns the beginning of a message about a setting: where its value was set,
// and its name where that does not say it.
func label(where, setting string) string {
	switch {
	case where == notSet:
		return setting
	case setting == "" || where == variable(setting) || where == flagName(setting):
		return where
	default:
		return where + ": " + setting
	}
}

// A report collects mistakes, so that they can be fixed together.
type report struct{ mistakes []mistake }

func (r *report) add(at place, setting, format string, args ...any) {
	r.mistakes = append(r.mistakes, mistake{at, setting, fmt.Sprintf(format, args...)})
}

// err returns the mistakes as one error with a line for each, or nil if there are
// none. Mistakes in the file come first, in the order of the file.
func (r *report) err() error {
	slices.SortStableFunc(r.mistakes, func(a, b mistake) int {
		if a.at.line == 0 || b.at.line == 0 {
			return cmp.Compare(min(b.at.line, 1), min(a.at.line, 1))
		}
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	var errs []error
	for _, m := range r.mistakes {
		errs = append(errs, m)
	}
	return errors.Join(errs...)
}

// IsAbout reports whether an error of [Read] is about one of the settings.
func IsAbout(err error, settings ...string) bool {
	all, _ := err.(interface{ Unwrap() []error })
	return all != nil && slices.ContainsFunc(all.Unwrap(), func(err error) bool {
		m, ok := errors.AsType[mistake](err)
		return ok && slices.Contains(settings, m.setting)
	})
}

// Check returns an error for settings that contradict each other, such as a public address
// without TLS. A server refuses them.
func (c *Config) Check() error {
	var r report
	c.checkListen(&r)
	c.checkAdminListen(&r)
	c.checkUsageFile(&r)
	if write := c.HTTP.WriteTimeout; c.StoreTimeout >= write { // the 503 could not be sent
		c.wrong(&r, c.given("timeouts.store", "timeouts.write"), "timeouts.store (%s) must be shorter than timeouts.write (%s)",
			duration.Format(c.StoreTimeout), duration.Format(write))
	}
	return r.err()
}

// wrong adds a mistake in the value that a setting has.
func (c *Config) wrong(r *report, setting, format string, args ...any) {
	r.add(c.place(setting), setting, format, args...)
}

func (c *Config) checkListen(r *report) {
	switch {
	case c.HTTP.CertFile == "" && c.HTTP.KeyFile != "":
		c.wrong(r, "tls_key", "needs tls_cert, which is not set")
	case c.HTTP.CertFile != "" && c.HTTP.KeyFile == "":
		c.wrong(r, "tls_cert", "needs tls_key, which is not set")
	case !c.TLS() && !isLoopback(c.Listen) && len(c.HTTP.TrustedProxies) == 0:
		c.wrong(r, "listen", "other machines can reach %s, and API keys would cross the network unencrypted; "+
			"set tls_cert and tls_key, or name the proxies that terminate TLS in trusted_proxies, or listen on 127.0.0.1", c.Listen)
	}
}

func (c *Config) checkAdminListen(r *report) {
	if c.AdminListen == "" {
		return
	}
	if !isLoopback(c.AdminListen) && c.AdminToken == "" {
		c.wrong(r, "admin_listen", "other machines can reach %s; set admin_token (%s) or listen on 127.0.0.1",
			c.AdminListen, variable("admin_token"))
	}
	if c.AdminListen == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
		c.wrong(r, c.given("admin_listen", "listen"), "the API and the admin listener cannot both use %s; change one of them", c.Listen)
	}
}

// given returns the setting of two that is not the default.
func (c *Config) given(one, other string) string {
	if _, set := c.places[one]; set {
		return one
	}
	return other
}

// checkUsageFile adds a mistake if a server would have no place for its usage, or would
// use a file that is something else.
func (c *Config) checkUsageFile(r *report) {
	if len(c.Redis) > 0 {
		return
	}
	switch {
	case c.UsagePath() == "":
		c.wrong(r, "database", "PostgreSQL does not keep usage and bans; set redis, which several servers can share, "+
			"or usage_file to a file of a single server")
	case c.UsageFile != "" && c.UsageFile == c.Database:
		c.wrong(r, "usage_file", "%s is the database; choose another file", c.UsageFile)
	}
}

// isLoopback reports whether only this machine can reach an address that passed
// parseAddress. The only name that is always a loopback address is localhost (RFC
// 6761 section 6.3).
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
