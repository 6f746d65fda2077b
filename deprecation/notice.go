package deprecation

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Notice is what a response says about the deprecation of its resource.
type Notice struct {
	Since  time.Time // instant of the deprecation, maybe in the future; zero if not sent
	Sunset time.Time // instant from which on it may be removed; zero if not sent

	// Targets of the first link with the relation deprecation, sunset and
	// successor-version; "" without such a link.
	Documentation string
	SunsetInfo    string
	Successor     string
}

// FromResponse reads the notice of a response. Targets of links are resolved
// against the URL of the request, if resp has one, without its user and password:
// a target is written into logs, and an http URL in a message must not have them (RFC
// 9110 section 4.2.4). A target such as "#v2" keeps the query of the request, which may
// hold secrets (RFC 3986 section 5.2.2). See FromHeader for the other results.
func FromResponse(resp *http.Response) (n Notice, ok bool, err error) {
	n, ok, err = FromHeader(resp.Header)
	if resp.Request == nil || resp.Request.URL == nil {
		return n, ok, err
	}
	base := *resp.Request.URL
	base.User = nil
	for _, target := range []*string{&n.Documentation, &n.SunsetInfo, &n.Successor} {
		if ref, parseErr := url.Parse(*target); *target != "" && parseErr == nil {
			*target = base.ResolveReference(ref).String()
		}
	}
	return n, ok, err
}

// FromHeader reads the notice in the header of a response, with the targets of
// links as they were sent. It returns true if there is a Deprecation or a Sunset
// field. If one of them is malformed or repeated, it also returns an error, and the
// notice has the rest.
func FromHeader(h http.Header) (Notice, bool, error) {
	var n Notice
	deprecation, sunset := h.Values("Deprecation"), h.Values("Sunset")
	if len(deprecation) == 0 && len(sunset) == 0 {
		return Notice{}, false, nil
	}
	var deprecationErr, sunsetErr error
	n.Since, deprecationErr = single(deprecation, ParseDeprecation, "deprecation: Deprecation is repeated: it must be sent once")
	n.Sunset, sunsetErr = single(sunset, ParseSunset, "deprecation: Sunset is repeated: it must be sent once")
	for _, l := range ParseLinks(h.Values("Link")) {
		if l.Anchor != "" {
			continue // is about another resource
		}
		n.Documentation = firstTarget(n.Documentation, l, relDeprecation)
		n.SunsetInfo = firstTarget(n.SunsetInfo, l, relSunset)
		n.Successor = firstTarget(n.Successor, l, relSuccessor)
	}
	return n, true, errors.Join(deprecationErr, sunsetErr)
}

// single parses a field that may have one value, on one line.
func single(values []string, parse func(string) (time.Time, error), repeated string) (time.Time, error) {
	switch len(values) {
	case 0:
		return time.Time{}, nil
	case 1:
		return parse(values[0])
	default:
		return time.Time{}, errors.New(repeated)
	}
}

func firstTarget(have string, l Link, rel string) string {
	if have == "" && l.Is(rel) {
		return l.Target
	}
	return have
}

func (o Options) validate() error {
	if o.Since.IsZero() && o.Sunset.IsZero() {
		return errors.New("Options.Since or Options.Sunset must be set")
	}
	if err := checkInstant("Since", o.Since); err != nil {
		return err
	}
	if err := checkInstant("Sunset", o.Sunset); err != nil {
		return err
	}
	if !o.Sunset.IsZero() && o.Sunset.Before(o.Since) {
		return fmt.Errorf("Options.Sunset must not be before Options.Since (%s), got %s", utc(o.Since), utc(o.Sunset))
	}
	for _, target := range []struct{ field, value string }{
		{"Documentation", o.Documentation},
		{"SunsetInfo", o.SunsetInfo},
		{"Successor", o.Successor},
	} {
		if target.value == "" {
			continue
		}
		if err := checkTarget(target.value); err != nil {
			return fmt.Errorf("Options.%s must be an absolute URL or an absolute path, got %q: %w", target.field, target.value, err)
		}
	}
	for i, b := range o.Brownouts {
		if err := b.validate(o.Since, o.Sunset); err != nil {
			return fmt.Errorf("Options.Brownouts[%d]%w", i, err)
		}
	}
	return nil
}

// checkInstant reports what keeps t from being written into both fields: they have
// whole seconds (a time with fractions came from a clock) and years of four digits.
func checkInstant(field string, t time.Time) error {
	if year := t.UTC().Year(); t.Nanosecond() != 0 || year < 1 || year > 9999 {
		return fmt.Errorf("Options.%s must be a whole second in the years 1 to 9999, got %s", field, utc(t))
	}
	return nil
}

// checkTarget reports why target does not mean the same wherever the link is read.
func checkTarget(target string) error {
	if err := checkReference(target); err != nil {
		return fmt.Errorf("it %w", err)
	}
	scheme, _, found := strings.Cut(target, ":")
	if target[0] != '/' && (!found || strings.ContainsAny(scheme, "/?#")) {
		return errors.New("it is relative")
	}
	return nil
}

// validate returns an error that continues the name of the brownout.
func (b Brownout) validate(since, sunset time.Time) error {
	switch {
	case sunset.IsZero():
		return errors.New(" needs Options.Sunset, which is not set")
	case b.Start.IsZero():
		return errors.New(".Start must be set")
	case b.End.IsZero():
		return errors.New(".End must be set")
	case !b.Start.Before(b.End):
		return fmt.Errorf(".End must be after its Start (%s), got %s", utc(b.Start), utc(b.End))
	case b.Start.Before(since):
		return fmt.Errorf(".Start must not be before Options.Since (%s), got %s", utc(since), utc(b.Start))
	case !b.End.Before(sunset):
		// Its Retry-After would name an instant at which every retry fails.
		return fmt.Errorf(".End must be before Options.Sunset (%s), got %s", utc(sunset), utc(b.End))
	}
	return nil
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
