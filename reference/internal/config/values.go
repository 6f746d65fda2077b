package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// These read a setting from text, wherever that is from. Their errors are what
// is wrong and what to write instead, and repeat no secret.

func (c *Config) setListen(text string) error {
	c.Listen = text
	return checkAddress(text)
}

func (c *Config) setAdminListen(text string) error {
	c.AdminListen = text
	if text == "" {
		return nil
	}
	return checkAddress(text)
}

// minToken is how long a token has to be to withstand guessing, if it is random.
const minToken = 16

// b64token is the syntax of a bearer token (RFC 6750 section 2.1).
var b64token = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

func (c *Config) setAdminToken(text string) error {
	c.AdminToken = Secret(text)
	if text == "" {
		return nil
	}
	if len(text) < minToken {
		return fmt.Errorf("want at least %d characters, chosen at random", minToken)
	}
	if !b64token.MatchString(text) {
		return errors.New("want letters, digits and - . _ ~ + / only, with = at most at the end, as a bearer token has to be (RFC 6750)")
	}
	return nil
}

func (c *Config) setDatabase(text string) error {
	c.Database = text
	switch {
	case text == "":
		return errors.New("must be a SQLite file such as petstore.db, got nothing")
	case strings.ContainsRune(text, 0):
		return errors.New("must not contain NUL")
	case strings.Contains(text, "://"): // which can contain a password
		return errors.New("must be a SQLite file such as petstore.db, got a URL; PostgreSQL is not supported yet")
	}
	return nil
}

func (c *Config) setRedis(text string) error {
	c.Redis = nil
	if text == "" {
		return nil
	}
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		u, err := url.Parse(part)
		if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
			return fmt.Errorf("address %d is not a URL such as redis://host:6379 (several are separated by commas)", i+1)
		}
		c.Redis = append(c.Redis, part)
	}
	return nil
}

func (c *Config) setTLSCert(text string) error {
	c.TLSCert = text
	return nil
}

func (c *Config) setTLSKey(text string) error {
	c.TLSKey = text
	return nil
}

func (c *Config) setMaxConnections(text string) error {
	return setCount(&c.MaxConnections, text)
}

func (c *Config) setMaxConnectionsPerNetwork(text string) error {
	return setCount(&c.MaxConnectionsPerNetwork, text)
}

// maxCount bounds the settings that count something: more than any machine has.
const maxCount = 1 << 24

func setCount(v *int, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxCount || strconv.Itoa(n) != text {
		return fmt.Errorf("must be a whole number from 1 to %d, got %q", maxCount, text)
	}
	*v = n
	return nil
}

// maxDrainDelay keeps a wrong unit from making a server that does not end.
const maxDrainDelay = time.Hour

func (c *Config) setDrainDelay(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxDrainDelay {
		return fmt.Errorf("must be a duration from 0s to 1h such as 10s, got %q", text)
	}
	c.DrainDelay = d
	return nil
}

// checkAddress wants a host, which may be empty, and a port in digits.
func checkAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not host and port, such as 127.0.0.1:8080", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) {
		return fmt.Errorf("%q is not a host", host)
	}
	return nil
}

// isLoopback reports whether only this machine can reach an address that passed
// checkAddress. Of names, only localhost is known to be of that kind (RFC 6761
// section 6.3).
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

// checkOrigin wants a web origin as browsers send it (RFC 6454 section 6.2).
func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != text ||
		strings.ToLower(text) != text || strings.Contains(u.Host, "*") {
		return fmt.Errorf("%q is not an origin such as https://app.example: scheme, host in lower case, and the port if it is not the usual one", text)
	}
	return nil
}

// anyPort reports whether the system chooses the port.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}
