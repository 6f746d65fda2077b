package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/duration"
)

// A value is a field of a Config, and how it is read.
type value struct {
	field any // a pointer to the field
	read  func(n node)
	plain bool // variables and flags have it as it is; otherwise they have it in YAML
}

// text returns the field in a form that can be compared. The values of plans cannot, because
// they change while a plan is in use.
func (v value) text() string { return fmt.Sprint(reflect.ValueOf(v.field).Elem()) }

// one is the value that parse makes of one text. The errors of parse, here and below, say
// what the text must be and what it is, and repeat no secret.
func one[T any](field *T, parse func(text string) (T, error)) value {
	return value{field, func(n node) {
		if v, ok := parsed(n, parse); ok {
			*field = v
		}
	}, true}
}

// list is the value that parse makes of each text in a list.
func list[T any](field *[]T, of string, parse func(text string) (T, error)) value {
	return value{field, func(n node) {
		*field = nil
		for _, item := range n.items("a list of " + of) {
			if v, ok := parsed(item, parse); ok {
				*field = append(*field, v)
			}
		}
	}, false}
}

func parsed[T any](n node, parse func(text string) (T, error)) (v T, ok bool) {
	text, ok := n.text()
	if !ok {
		return v, false
	}
	v, err := parse(text)
	if err != nil {
		n.wrong("%v", err)
	}
	return v, err == nil
}

// word is the value that is one of some words.
func word(field *string, words ...string) value {
	return one(field, func(text string) (string, error) { return text, oneOf(text, words...) })
}

func oneOf(text string, words ...string) error {
	if slices.Contains(words, text) {
		return nil
	}
	last := len(words) - 1
	return fmt.Errorf("must be %s or %s, got %q", strings.Join(words[:last], ", "), words[last], text)
}

func yesOrNo(field *bool) value {
	return one(field, func(text string) (bool, error) {
		text = strings.ToLower(text)
		return text == "true", oneOf(text, "true", "false")
	})
}

const (
	maxConnections = 1 << 24 // more than any machine has
	maxStrikes     = 10_000  // as in package ratelimit
)

// whole is a whole number in a range.
func whole(field *int, least, most int) value {
	return one(field, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most || strconv.Itoa(n) != text {
			return 0, fmt.Errorf("must be a whole number from %d to %d, got %q", least, most, text)
		}
		return n, nil
	})
}

// period is a duration in a range.
func period(field *time.Duration, least, most time.Duration) value {
	return one(field, func(text string) (time.Duration, error) {
		v, err := duration.Parse(text)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("must be a duration from %v to %s such as 10s, got %q", least, duration.Format(most), text)
		}
		return v, nil
	})
}

func parseText(text string) (string, error) { return text, nil }

// parseAddress accepts a host, which may be empty, and a port in digits.
func parseAddress(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("must be host and port such as 127.0.0.1:8080, got %q", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("must have a port from 0 to 65535, got %q", port)
	}
	return text, nil
}

func parseAddressOrNone(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseAddress(text)
}

// minToken is the length at which a random token withstands guessing.
const minToken = 16

// b64token is the syntax of a bearer token (RFC 6750 section 2.1).
var b64token = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

func parseToken(text string) (string, error) {
	switch {
	case text == "":
	case len(text) < minToken:
		return "", fmt.Errorf("must have at least %d random characters, got %d", minToken, len(text))
	case !b64token.MatchString(text):
		return "", errors.New("must have only letters, digits and - . _ ~ + /, and = only at the end (RFC 6750 section 2.1)")
	}
	return text, nil
}

func parseDatabase(text string) (string, error) { return text, database.Check(text) }

func parseRedis(text string) (urls []string, err error) {
	if text == "" {
		return nil, nil
	}
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		u, err := url.Parse(part)
		if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
			return nil, fmt.Errorf("must be URLs such as redis://host:6379, separated by commas; address %d is not one", i+1)
		}
		options, err := redis.ParseURL(part)
		if err != nil { // such as one that names no database
			return nil, fmt.Errorf("address %d: %w", i+1, withoutURL(err))
		}
		if options.DB != 0 && strings.Contains(text, ",") {
			return nil, errors.New("a cluster has no numbered databases; remove the number")
		}
		urls = append(urls, part)
	}
	return urls, nil
}

// withoutURL returns the innermost error: the others repeat the URL and its password.
func withoutURL(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

func parseLevel(text string) (level slog.Level, err error) {
	if err := oneOf(text, "debug", "info", "warn", "error"); err != nil {
		return 0, err
	}
	return level, level.UnmarshalText([]byte(text))
}

func parseProxies(text string) (netip.Prefix, error) {
	prefixes, err := clientip.ParsePrefixes([]string{text})
	if err == nil {
		_, err = clientip.FromXForwardedFor(prefixes)
	}
	if err != nil {
		return netip.Prefix{}, trimPrefixes(err, "clientip: ", "trusted proxies: ")
	}
	return prefixes[0], nil
}

// parseOrigin accepts a web origin as browsers send it (RFC 6454 section 6.2).
func parseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != text ||
		strings.ToLower(text) != text || strings.Contains(u.Host, "*") {
		return "", fmt.Errorf("must be an origin such as https://app.example or http://localhost:3000 in lower case, got %q", text)
	}
	return text, nil
}

// parseServer accepts a base address of the API, which ends in its version.
func parseServer(text string) (string, error) {
	u, err := url.Parse(text)
	plain := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
	if text != "" && (!plain || !strings.HasSuffix(u.Path, "/v1")) {
		return "", errors.New("must be a URL such as https://pets.example/v1, which ends in /v1")
	}
	return text, nil
}

// trimPrefixes removes prefixes of an error that mean nothing to the author of a file.
func trimPrefixes(err error, prefixes ...string) error {
	text := err.Error()
	for _, prefix := range prefixes {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}
