package deprecation

import (
	"fmt"
	"net/http"
	"slices"
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
// A nil *Declaration is that of an operation which is not deprecated: it sets no
// headers and refuses nothing.
type Declaration struct {
	since, sunset time.Time
	brownouts     []Brownout // in order, apart from each other
	onUse         func(r *http.Request)
	errors        *apierror.Responder
	now           func() time.Time

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
		brownouts: merge(o.Brownouts),
		onUse:     o.OnUse,
		errors:    o.Errors,
		now:       o.Now,
	}
	if d.now == nil {
		d.now = time.Now
	}
	if !o.Since.IsZero() {
		d.since = o.Since.UTC()
		d.deprecationField = fieldValue(FormatDeprecation(o.Since))
	}
	if !o.Sunset.IsZero() {
		d.sunset = o.Sunset.UTC()
		d.sunsetField = fieldValue(FormatSunset(o.Sunset))
		d.removed, d.brownout = refusals(d.sunset, o.Successor)
	}
	if links := o.links(); len(links) > 0 {
		d.links = &linkField{fieldValue(formatLinks(links))}
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

// Since returns the instant of the deprecation in UTC, or zero if none is set.
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

const (
	relDeprecation = "deprecation"       // RFC 9745 section 3
	relSunset      = "sunset"            // RFC 8594 section 6
	relSuccessor   = "successor-version" // RFC 5829 section 3.6
)

// links are in the order in which a reader needs them: where to go, why, and when.
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

func fieldValue(v string) []string { return []string{v} }

// refusals are the answers after the sunset and during a brownout.
func refusals(sunset time.Time, successor string) (removed, brownout *apierror.Error) {
	day := sunset.Format("2 January 2006")
	instead := ""
	if successor != "" {
		instead = " Use " + successor + " instead."
	}
	return apierror.New(http.StatusGone, "operation_removed",
			"This operation was removed on "+day+"."+instead),
		apierror.New(http.StatusGone, "operation_removed",
			"This operation is deprecated and temporarily switched off. It will be removed on "+day+"."+instead)
}

// merge returns the brownouts in order, those that touch or overlap as one, since
// Retry-After has to lead out of all of them.
func merge(brownouts []Brownout) []Brownout {
	sorted := slices.Clone(brownouts)
	slices.SortFunc(sorted, func(a, b Brownout) int { return a.Start.Compare(b.Start) })
	var merged []Brownout
	for _, b := range sorted {
		if n := len(merged); n > 0 && !b.Start.After(merged[n-1].End) {
			if b.End.After(merged[n-1].End) {
				merged[n-1].End = b.End
			}
			continue
		}
		merged = append(merged, b)
	}
	return merged
}

// brownoutLeft returns how long the brownout in force at now still lasts, or 0.
func (d *Declaration) brownoutLeft(now time.Time) time.Duration {
	i, _ := slices.BinarySearchFunc(d.brownouts, now, func(b Brownout, now time.Time) int {
		if b.End.After(now) {
			return 1
		}
		return -1
	})
	if i == len(d.brownouts) || now.Before(d.brownouts[i].Start) {
		return 0
	}
	return d.brownouts[i].End.Sub(now)
}
