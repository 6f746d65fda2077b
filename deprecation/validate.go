package deprecation

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

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
