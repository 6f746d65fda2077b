package deprecation

import (
	"errors"
	"slices"
	"time"
)

func (b Brownout) check(since, sunset time.Time) error {
	switch {
	case sunset.IsZero():
		return errors.New("there is no sunset to prepare for")
	case b.Start.IsZero() || b.End.IsZero():
		return errors.New("the start or the end is not set")
	case !b.Start.Before(b.End):
		return errors.New("the start is not before the end")
	case b.Start.Before(since):
		return errors.New("the start is before the deprecation")
	case !b.End.Before(sunset):
		// Its Retry-After would name an instant at which there is nothing to retry.
		return errors.New("the end is not before the sunset")
	}
	return nil
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

// brownoutAt returns how long the brownout lasts in which now lies, or 0.
func (d *Declaration) brownoutAt(now time.Time) time.Duration {
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
