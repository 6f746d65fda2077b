package deprecation

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// Options describe a deprecation. At least one of Since and Sunset must be set.
type Options struct {
	// Since is the instant of the deprecation, which may be in the future. It must be
	// a constant whole second, never time.Now(): every response of every instance
	// names the same one. Zero: the instant is not known, and responses have no
	// Deprecation field, which cannot be written without one.
	Since time.Time

	// Sunset is the instant from which on the operation answers 410: a whole second,
	// not before Since (RFC 9745 section 4). Zero: no date of removal is set.
	Sunset time.Time

	// Documentation is where the deprecation is explained, SunsetInfo where the
	// removal is, Successor what to call instead: the targets of links with the
	// relations deprecation, sunset and successor-version. Each is an absolute URL
	// or an absolute path such as "/v1/pets?status=available"; "" means no link.
	// URI templates are refused (RFC 8288 section 3.1), and so is "pets", which
	// clients would resolve against the path of the request.
	Documentation string
	SunsetInfo    string
	Successor     string

	// Brownouts are periods before the sunset in which the operation already
	// answers 410, with a Retry-After to the end of the period. Periods that touch
	// or overlap become one.
	Brownouts []Brownout

	// OnUse, if set, is called by Enforce with each request that reaches the
	// operation, refused or not, before it is answered. A server counts the callers
	// there. It runs in the goroutine of the request and must be safe for
	// concurrent use.
	OnUse func(r *http.Request)

	// Errors writes the 410. Nil works.
	Errors *apierror.Responder

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Brownout is a period in which a deprecated operation is switched off, so that its
// callers notice before it is removed.
type Brownout struct {
	Start time.Time // the first instant that is refused
	End   time.Time // the first instant that is served again; before the sunset
}

// Declaration says that an operation is deprecated, and when it is removed. It does
// not change, and is safe for concurrent use.
//
// A nil *Declaration means that the operation is not deprecated: it sets no
// headers and refuses nothing.
type Declaration struct {
	sunset    time.Time
	brownouts []Brownout // in the order in which they begin
	onUse     func(r *http.Request)
	errors    *apierror.Responder
	now       func() time.Time

	// Values of fields, shared by all responses. Their length and capacity are 1,
	// so that appending to one makes a copy.
	deprecationField []string   // nil without an instant
	sunsetField      []string   // nil without a sunset
	links            *linkField // nil without links

	removed, brownout *apierror.Error
}

// New declares an operation deprecated. An error names the option that is wrong.
func New(o Options) (*Declaration, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("deprecation: %w", err)
	}
	d := &Declaration{
		brownouts: slices.SortedFunc(slices.Values(o.Brownouts), func(a, b Brownout) int { return a.Start.Compare(b.Start) }),
		onUse:     o.OnUse,
		errors:    o.Errors,
		now:       o.Now,
	}
	if d.now == nil {
		d.now = time.Now
	}
	if !o.Since.IsZero() {
		d.deprecationField = []string{"@" + strconv.FormatInt(o.Since.Unix(), 10)} // RFC 9745 section 2.1
	}
	if !o.Sunset.IsZero() {
		d.sunset = o.Sunset.UTC()
		d.sunsetField = []string{d.sunset.Format(http.TimeFormat)} // RFC 8594 section 3
		d.removed, d.brownout = refusals(d.sunset, o.Successor)
	}
	if links := o.links(); links != "" {
		d.links = &linkField{[]string{links}}
	}
	return d, nil
}

// MustNew is New for declarations that are part of the program. It panics where New
// returns an error.
func MustNew(o Options) *Declaration {
	d, err := New(o)
	if err != nil {
		panic(err)
	}
	return d
}

const (
	relDeprecation = "deprecation"       // RFC 9745 section 3
	relSunset      = "sunset"            // RFC 8594 section 6
	relSuccessor   = "successor-version" // RFC 5829 section 3.6
)

// links returns the value of Link (RFC 8288), or "". The links are in the order in which a
// reader needs them: where to go, why, and when.
func (o Options) links() string {
	var links []string
	for _, l := range []struct{ target, rel string }{
		{o.Successor, relSuccessor}, {o.Documentation, relDeprecation}, {o.SunsetInfo, relSunset},
	} {
		if l.target != "" {
			links = append(links, "<"+l.target+`>; rel="`+l.rel+`"`)
		}
	}
	return strings.Join(links, ", ")
}

// refusals are the answers after the sunset and during a brownout.
func refusals(sunset time.Time, successor string) (removed, brownout *apierror.Error) {
	day := sunset.Format("2 January 2006")
	instead := ""
	if successor != "" {
		instead = " Use " + successor + " instead."
	}
	removed = apierror.New(http.StatusGone, "operation_removed", "This operation was removed on "+day+"."+instead)
	brownout = apierror.New(http.StatusGone, "operation_removed",
		"This operation is deprecated and temporarily switched off. It will be removed on "+day+"."+instead)
	removed.Args = map[string]any{"sunset": sunset, "successor": successor}
	brownout.Args = removed.Args
	return removed, brownout
}

// brownoutLeft returns how long the brownout in force at now still lasts, or 0. Those that
// touch or overlap count as one, since Retry-After has to lead out of all of them.
func (d *Declaration) brownoutLeft(now time.Time) time.Duration {
	end := now
	for _, b := range d.brownouts {
		if !b.Start.After(end) && b.End.After(end) {
			end = b.End
		}
	}
	return end.Sub(now)
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

// checkTarget reports why a link to target cannot be written, or does not mean the same
// wherever it is read. url.Parse alone accepts spaces, braces and quotes.
func checkTarget(target string) error {
	for _, c := range target {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && !strings.ContainsRune("0123456789-._~:/?#[]@!$&'()*+,;=%", c) {
			return fmt.Errorf("it has the character %q, which must be percent-encoded", c)
		}
	}
	u, err := url.Parse(target)
	if err == nil {
		_, err = url.PathUnescape(target)
	}
	if err == nil && u.Scheme == "" && target[0] != '/' {
		err = errors.New("it is relative")
	}
	return err
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
		return fmt.Errorf(".End must be after the start (%s), got %s", utc(b.Start), utc(b.End))
	case b.Start.Before(since):
		return fmt.Errorf(".Start must not be before Options.Since (%s), got %s", utc(since), utc(b.Start))
	case !b.End.Before(sunset):
		// Its Retry-After would name an instant at which every retry fails.
		return fmt.Errorf(".End must be before Options.Sunset (%s), got %s", utc(sunset), utc(b.End))
	}
	return nil
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
