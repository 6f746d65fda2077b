package deprecation

import (
	"slices"
	"time"
)

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
