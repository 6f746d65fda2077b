//go:build unix

package fleet

import (
	"fmt"
	"strings"
)

// judge fails the test if more was admitted in a window than the limit. It adds the windows
// to a report.
func (f *fleet) judge(r *report) {
	windows := 0
	f.book.verdicts(func(v verdict) {
		windows++
		if v.over > 0 {
			f.Errorf("%d more were admitted than there were units for: %+v %+v", v.over, *v.subject, v)
		}
		k := f.fault(v)
		r.row("%d | %s", len(f.members), faultNames[k]).add(v)
		if k == nothing {
			r.row("%d | %d in %d s, %v", len(f.members), v.limit, v.window, v.traffic).add(v)
		}
	})
	if windows == 0 || f.stats.Local == 0 && len(f.members) > 1 { // a single one may just have been killed
		f.Errorf("%d windows, %+v: no request was admitted from a share", windows, f.stats)
	}
	f.Logf("%d members, %d windows, %d decisions from shares, %d questions", len(f.members), windows, f.stats.Local, f.stats.Asked)
}

// A report is a table of what came of windows.
type report struct {
	names []string
	rows  map[string]*row
}

type row struct {
	windows, admitted, over, failed int64

	// Of windows with a demand below the room, and above it. Under is the denials of requests
	// that there were units for, room those units, and worst the largest part of a limit.
	below, above struct {
		room, under int64
		worst       float64
	}
}

func (r *report) row(format string, args ...any) *row {
	name := fmt.Sprintf(format, args...)
	if r.rows == nil {
		r.rows = map[string]*row{}
	}
	if r.rows[name] == nil {
		r.names = append(r.names, name)
		r.rows[name] = new(row)
	}
	return r.rows[name]
}

func (r *row) add(v verdict) {
	r.windows++
	r.admitted += v.counts[admitted]
	r.over += v.over
	r.failed += v.counts[failed]
	p := &r.above
	if v.inWindow(v.number)*float64(v.limit) <= float64(v.room) {
		p = &r.below
	}
	p.room += v.room
	p.under += v.under
	p.worst = max(p.worst, float64(v.under)/float64(v.limit))
}

func (r *report) String() string {
	var b strings.Builder
	b.WriteString("\n| processes | | windows | admitted | over | failed | denied at 0.95 of the limit | worst window | under above the limit | worst window |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, name := range r.names {
		w := r.rows[name]
		part := func(n int64, of int64) float64 { return 100 * float64(n) / float64(max(of, 1)) }
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d, %.2f %% | %.1f %% | %.2f %% | %.1f %% |\n", name, w.windows, w.admitted, w.over, w.failed,
			w.below.under, part(w.below.under, w.below.room), 100*w.below.worst, part(w.above.under, w.above.room), 100*w.above.worst)
	}
	return b.String()
}
