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

	"github.com/animalstore/gatehouse/reference/internal/duration"
)

// These functions set one setting from text, whether it comes from the file, the
// environment or a flag. Their errors follow the name of the setting: what it must
// be and what was given. They repeat no secret.

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

// minToken is the length at which a random token withstands guessing.
const minToken = 16

// b64token is the syntax of a bearer token (RFC 6750 section 2.1).
var b64token = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

func (c *Config) setAdminToken(text string) error {
	c.AdminToken = Secret(text)
	if text == "" {
		return nil
	}
	if len(text) < minToken {
		return fmt.Errorf("must have at least %d random characters, got %d", minToken, len(text))
	}
	if !b64token.MatchString(text) {
		return errors.New("must have only letters, digits and - . _ ~ + /, and = only at the end (RFC 6750 section 2.1)")
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
			return fmt.Errorf("must be URLs such as redis://host:6379, separated by commas; address %d is not one", i+1)
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

// maxCount is more connections than any machine has.
const maxCount = 1 << 24

func setCount(v *int, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxCount || strconv.Itoa(n) != text {
		return fmt.Errorf("must be a whole number from 1 to %d, got %q", maxCount, text)
	}
	*v = n
	return nil
}

// maxDrainDelay catches a wrong unit, with which the server would not end.
const maxDrainDelay = time.Hour

func (c *Config) setDrainDelay(text string) error {
	d, err := duration.Parse(text)
	if err != nil || d < 0 || d > maxDrainDelay {
		return fmt.Errorf("must be a duration from 0s to 1h such as 10s, got %q", text)
	}
	c.DrainDelay = d
	return nil
}

// maxTimeout catches a wrong unit, with which nothing would ever end.
const maxTimeout = time.Hour

func setTimeout(v *time.Duration, text string) error {
	d, err := duration.Parse(text)
	if err != nil || d < time.Millisecond || d > maxTimeout {
		return fmt.Errorf("must be a duration from 1ms to 1h such as 10s, got %q", text)
	}
	*v = d
	return nil
}

// checkAddress accepts a host, which may be empty, and a port in digits.
func checkAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("must be host and port such as 127.0.0.1:8080, got %q", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("must have a port from 0 to 65535, got %q", port)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) {
		return fmt.Errorf("must have an address or a name as its host, got %q", host)
	}
	return nil
}

// isLoopback reports whether only this machine can reach an address that passed
// checkAddress. The only name that is always a loopback address is localhost (RFC
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

// checkOrigin accepts a web origin as browsers send it (RFC 6454 section 6.2).
func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != text ||
		strings.ToLower(text) != text || strings.Contains(u.Host, "*") {
		return fmt.Errorf("must be an origin such as https://app.example or http://localhost:3000 in lower case, got %q", text)
	}
	return nil
}

// anyPort reports whether the system chooses the port.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}

// setBool sets a setting that is true or false, in any case of letters, as YAML has them.
func setBool(to *bool, text string) error {
	*to = strings.EqualFold(text, "true")
	if !*to && !strings.EqualFold(text, "false") {
		return fmt.Errorf("must be true or false, got %q", text)
	}
	return nil
}
