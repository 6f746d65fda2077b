package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/duration"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A rule says how a setting is read, shown and copied.
//
// The errors of its functions follow the name of the setting: what it must be and what was
// given. They repeat no secret.
type rule struct {
	read func(d *decoder, n *yaml.Node, setting string) // from the file
	set  func(c *Config, text string) error             // from a variable or a flag; nil: only the file can set it
	show func(c *Config, setting string) []value
	copy func(to, from *Config)
}

// A value is what one setting is set to, as the file has it.
type value struct {
	name  string   // of the setting, or of one member of a group such as plans.free
	text  string   // of a list: "[a, b]"
	shown string   // the text without a secret
	items []string // of a list
}

// scalar is the rule of a setting with one value. In the file it is of a kind, and an
// example says what it must be.
func scalar[T any](want kind, example string, field func(*Config) *T, parse func(text string) (T, error), show func(T) string) rule {
	set := func(c *Config, text string) error {
		v, err := parse(text)
		if err == nil {
			*field(c) = v
		}
		return err
	}
	return rule{
		read: func(d *decoder, n *yaml.Node, setting string) {
			if !d.is(n, setting, want, example) {
				return
			}
			if err := set(d.c, n.Value); err != nil {
				d.add(d.at(n), setting, "%v", err)
			}
		},
		set: set,
		show: func(c *Config, setting string) []value {
			text := show(*field(c))
			return []value{{name: setting, text: text, shown: text}}
		},
		copy: func(to, from *Config) { *field(to) = *field(from) },
	}
}

// shownAs returns the rule for a setting whose text can have a secret, which hide removes.
func (r rule) shownAs(hide func(text string) string) rule {
	show := r.show
	r.show = func(c *Config, setting string) []value {
		values := show(c, setting)
		for i := range values {
			values[i].shown = hide(values[i].text)
		}
		return values
	}
	return r
}

// list is the rule of a list of text. If there is an order, it is sorted and has no item
// twice.
func list[T comparable](of string, field func(*Config) *[]T, parse func(text string) (T, error), show func(T) string, order func(a, b T) int) rule {
	return rule{
		read: func(d *decoder, n *yaml.Node, setting string) {
			var all []T
			for i, item := range d.texts(n, setting, "a list of "+of) {
				v, err := parse(item.Value)
				if err != nil {
					d.add(d.at(item), fmt.Sprintf("%s[%d]", setting, i), "%v", err)
					continue
				}
				all = append(all, v)
			}
			if order != nil {
				slices.SortFunc(all, order)
				all = slices.Compact(all)
			}
			*field(d.c) = all
		},
		show: func(c *Config, setting string) []value {
			var items []string
			for _, v := range *field(c) {
				items = append(items, show(v))
			}
			return []value{listValue(setting, items)}
		},
	}
}

func listValue(setting string, items []string) value {
	text := listText(items)
	return value{name: setting, text: text, shown: text, items: items}
}

func listText(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

// choice is the rule of a setting that is one of some words.
func choice(field func(*Config) *string, words ...string) rule {
	return scalar(text, orList(words...), field, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("must be %s, got %q", orList(words...), text)
		}
		return text, nil
	}, asIs)
}

func orList(words ...string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func asIs(text string) string { return text }

// yesOrNo is the rule of a setting that is true or false, in any case of letters.
func yesOrNo(field func(*Config) *bool) rule {
	return scalar(boolean, "true or false", field, func(text string) (bool, error) {
		yes := strings.EqualFold(text, "true")
		if !yes && !strings.EqualFold(text, "false") {
			return false, fmt.Errorf("must be true or false, got %q", text)
		}
		return yes, nil
	}, strconv.FormatBool)
}

const (
	maxConnections = 1 << 24   // more than any machine has
	maxLogSize     = 1_000_000 // in MiB
)

// whole is the rule of a whole number in a range, of a unit such as " of MiB".
func whole(field func(*Config) *int, unit string, least, most int) rule {
	return scalar(number, "a whole number", field, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most || strconv.Itoa(n) != text {
			return 0, fmt.Errorf("must be a whole number%s from %d to %d, got %q", unit, least, most, text)
		}
		return n, nil
	}, strconv.Itoa)
}

// decimal is the rule of a number of the penalty, whose range [decoder.penalty] checks.
func decimal(field func(*Config) *int) rule {
	return scalar(number, "a whole number", field, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(n) != text {
			return 0, fmt.Errorf("must be a whole number in decimal digits, got %s", text)
		}
		return n, nil
	}, strconv.Itoa)
}

// maxPeriod catches a wrong unit, with which nothing would ever end.
const maxPeriod = time.Hour

// period is the rule of a duration up to maxPeriod.
func period(field func(*Config) *time.Duration, least time.Duration) rule {
	return scalar(text, "a duration such as 10s", field, func(text string) (time.Duration, error) {
		v, err := duration.Parse(text)
		if err != nil || v < least || v > maxPeriod {
			return 0, fmt.Errorf("must be a duration from %v to 1h such as 10s, got %q", least, text)
		}
		return v, nil
	}, duration.Format)
}

// length is the rule of a duration of the penalty, whose range [decoder.penalty] checks.
func length(field func(*Config) *time.Duration) rule {
	const example = "a duration such as 90s, 24h or 30d"
	return scalar(text, example, field, func(text string) (time.Duration, error) {
		v, err := duration.Parse(text)
		if err != nil {
			return 0, fmt.Errorf("must be %s, got %q", example, text)
		}
		return v, nil
	}, duration.Format)
}

// file is the rule of the name of a file.
func file(field func(*Config) *string) rule {
	return scalar(text, "text", field, func(text string) (string, error) {
		if strings.ContainsRune(text, 0) {
			return "", errors.New("must not contain NUL")
		}
		return text, nil
	}, asIs)
}

// address is the rule of the address of a listener.
func address(example string, field func(*Config) *string, parse func(string) (string, error)) rule {
	return scalar(text, "host and port such as "+example, field, parse, asIs)
}

// parseAddress accepts a host, which may be empty, and a port in digits.
func parseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("must be host and port such as 127.0.0.1:8080, got %q", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("must have a port from 0 to 65535, got %q", port)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) {
		return "", fmt.Errorf("must have an address or a name as its host, got %q", host)
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

func parseToken(text string) (Secret, error) {
	switch {
	case text == "":
	case len(text) < minToken:
		return "", fmt.Errorf("must have at least %d random characters, got %d", minToken, len(text))
	case !b64token.MatchString(text):
		return "", errors.New("must have only letters, digits and - . _ ~ + /, and = only at the end (RFC 6750 section 2.1)")
	}
	return Secret(text), nil
}

func redacted(text string) string { return Secret(text).String() }

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
		urls = append(urls, part)
	}
	return urls, nil
}

func joinRedis(urls []string) string { return strings.Join(urls, ",") }

func parseLevel(text string) (slog.Level, error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if levelText(level) == text {
			return level, nil
		}
	}
	return 0, fmt.Errorf("must be debug, info, warn or error, got %q", text)
}

func levelText(level slog.Level) string { return strings.ToLower(level.String()) }

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

func parseNetwork(text string) (netip.Prefix, error) {
	prefixes, err := clientip.ParsePrefixes([]string{text})
	if err != nil {
		return netip.Prefix{}, trimPrefixes(err, "clientip: ")
	}
	p := prefixes[0]
	switch {
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%q must be in the form of IPv4, such as 192.0.2.0/24", text)
	case p != p.Masked():
		return p, fmt.Errorf("%q has bits beyond its length; write %v", text, p.Masked())
	}
	return p, nil
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

func parseOwner(text string) (string, error) { return text, store.CheckText(text) }

// trimPrefixes removes prefixes of an error that mean nothing to the author of a file.
func trimPrefixes(err error, prefixes ...string) error {
	text := err.Error()
	for _, prefix := range prefixes {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}
