package deprecation

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// Options are the optional parts of a declaration. The zero value declares an
// operation deprecated, with no date of removal and nothing to read.
type Options struct {
	// Sunset is the instant from which on the operation answers 410: a whole second,
	// not before the deprecation (RFC 9745 section 4). Zero: no date is set.
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

	// OnUse, if set, is called by Handler with each request that reaches the
	// operation, refused or not, before it is answered. A server counts the callers
	// there. It runs in the goroutine of the request and must be safe for
	// concurrent use.
	OnUse func(r *http.Request)

	// Errors writes the 410. Nil works.
	Errors *apierror.Responder

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Brownout is a period in which a deprecated operation is switched off for a
// while, so that its callers notice before it is removed.
type Brownout struct {
	Start time.Time // the first instant that is refused
	End   time.Time // the first instant that is served again; before the sunset
}

// Declaration says that an operation is deprecated, and from when on it is
// removed. It does not change, and is safe for concurrent use.
//
// A nil *Declaration is that of an operation which is not deprecated: it writes
// no fields and refuses nothing.
type Declaration struct {
	since, sunset time.Time
	brownouts     []Brownout // in order, apart from each other
	onUse         func(r *http.Request)
	errors        *apierror.Responder
	now           func() time.Time

	// Values of fields, shared by all responses. Their length and capacity are 1,
	// so that appending to one makes a copy.
	deprecationField []string
	sunsetField      []string   // nil without a sunset
	links            *linkField // nil without links

	removed, brownout *apierror.Error
}

// New declares an operation deprecated since an instant, which may be in the
// future. It is a whole second and does not come from a clock: every response
// of every instance names the same one.
func New(since time.Time, o Options) (*Declaration, error) {
	if err := checkInstant(since); err != nil {
		return nil, fmt.Errorf("deprecation: since: %w", err)
	}
	if err := o.validate(since); err != nil {
		return nil, err
	}
	d := &Declaration{
		since:            since.UTC(),
		brownouts:        merge(o.Brownouts),
		onUse:            o.OnUse,
		errors:           o.Errors,
		now:              o.Now,
		deprecationField: fieldValue(FormatDeprecation(since)),
	}
	if d.now == nil {
		d.now = time.Now
	}
	if !o.Sunset.IsZero() {
		d.sunset = o.Sunset.UTC()
		d.sunsetField = fieldValue(FormatSunset(o.Sunset))
		d.removed, d.brownout = refusals(d.sunset, o.Successor)
	}
	if links := o.links(); len(links) > 0 {
		value, err := FormatLinks(links...)
		if err != nil {
			return nil, err
		}
		d.links = &linkField{fieldValue(value)}
	}
	return d, nil
}

// MustNew is New for declarations that stand in the program. It panics where New
// returns an error.
func MustNew(since time.Time, o Options) *Declaration {
	d, err := New(since, o)
	if err != nil {
		panic(err)
	}
	return d
}

// Since returns the instant of the deprecation in UTC, or zero if d is nil.
func (d *Declaration) Since() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.since
}

// Sunset returns the instant of the removal in UTC, or zero if none is set.
func (d *Declaration) Sunset() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.sunset
}

// SunsetDate returns the day of the removal in UTC as an RFC 3339 full-date such
// as "2030-12-05", or "" if none is set. An OpenAPI document carries it as
// x-sunset beside deprecated: true.
func (d *Declaration) SunsetDate() string {
	if d.Sunset().IsZero() {
		return ""
	}
	return d.sunset.Format(time.DateOnly)
}

func (o Options) validate(since time.Time) error {
	if !o.Sunset.IsZero() {
		if err := checkInstant(o.Sunset); err != nil {
			return fmt.Errorf("deprecation: Options.Sunset: %w", err)
		}
		if o.Sunset.Before(since) {
			return errors.New("deprecation: Options.Sunset: is before the deprecation")
		}
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
			return fmt.Errorf("deprecation: Options.%s: %w", target.field, err)
		}
	}
	for i, b := range o.Brownouts {
		if err := b.check(since, o.Sunset); err != nil {
			return fmt.Errorf("deprecation: Options.Brownouts[%d]: %w", i, err)
		}
	}
	return nil
}

// checkInstant holds a declared time against what both fields can say: whole
// seconds (a time with more came from a clock) and years of four digits.
func checkInstant(t time.Time) error {
	switch year := t.UTC().Year(); {
	case t.IsZero():
		return errors.New("is not set")
	case t.Nanosecond() != 0:
		return errors.New("is not a whole second")
	case year < 1 || year > 9999:
		return errors.New("is not in the years 1 to 9999")
	}
	return nil
}

// checkTarget wants a target that means the same wherever the link is read.
func checkTarget(target string) error {
	if err := checkReference(target); err != nil {
		return err
	}
	scheme, _, found := strings.Cut(target, ":")
	if target[0] != '/' && (!found || strings.ContainsAny(scheme, "/?#")) {
		return errors.New("is neither an absolute URL nor an absolute path")
	}
	return nil
}

// links are in the order of their use to a reader: where to go, why, and when.
func (o Options) links() []Link {
	var links []Link
	for _, l := range []Link{
		{Target: o.Successor, Rel: relSuccessor},
		{Target: o.Documentation, Rel: relDeprecation},
		{Target: o.SunsetInfo, Rel: relSunset},
	} {
		if l.Target != "" {
			links = append(links, l)
		}
	}
	return links
}

const (
	relDeprecation = "deprecation"       // RFC 9745 section 3
	relSunset      = "sunset"            // RFC 8594 section 6
	relSuccessor   = "successor-version" // RFC 5829 section 3.6
)

func fieldValue(v string) []string { return []string{v} }

// refusals are the answers after the sunset and during a brownout.
func refusals(sunset time.Time, successor string) (removed, brownout *apierror.Error) {
	instead := "."
	if successor != "" {
		instead = "; use " + successor + " instead."
	}
	day := sunset.Format("2 January 2006")
	return apierror.New(http.StatusGone, apierror.CodeOperationRemoved,
			"This operation was removed on "+day+instead),
		apierror.New(http.StatusGone, apierror.CodeOperationRemoved,
			"This operation is deprecated and switched off for a while, as announced. It will be removed on "+day+instead)
}
