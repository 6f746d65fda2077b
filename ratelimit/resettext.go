package ratelimit

import (
	"strconv"
	"time"
)

// A resetText is the X-RateLimit-Reset of a running window. All subjects of a plan have
// the same windows, so that its digits are made once for each window.
type resetText struct {
	at   int64
	text string
}

// firstReset is what a plan keeps after its first request. A service may make a plan
// for each request; a text would be made for nothing then.
var firstReset = &resetText{at: -1} // no Reset is negative

// appendReset returns the text of X-RateLimit-Reset if the plan keeps it, and otherwise
// appends it to b.
func (d *Decision) appendReset(b []byte) (_ []byte, kept string) {
	at, last := d.Reset(), &d.Plan.resets[d.Applicable]
	switch text := last.Load(); {
	case text == nil:
		last.Store(firstReset)
	case text.at == at:
		return b, text.text
	case text.at*int64(time.Second) <= d.Time && d.BanEnds == 0:
		// Only a text of the past is replaced: in other engines, the windows of each
		// subject may begin with its first request.
		text = &resetText{at, strconv.FormatInt(at, 10)}
		last.Store(text)
		return b, text.text
	}
	return strconv.AppendInt(b, at, 10), ""
}
