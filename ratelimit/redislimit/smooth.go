package redislimit

import (
	"encoding/binary"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// What a length in Redis is more than the window. See format.lua.
const (
	smoothLength = 1 << 31 // of a smooth quota
	wideLength   = 3 << 30 // of the second entry of a window
)

// lengthOf returns what stands for a kind of windows where Redis has a length.
func lengthOf(kind time.Duration) uint32 {
	if kind < 0 {
		return smoothLength + seconds(-kind)
	}
	return seconds(kind)
}

// kindOf returns the kind of windows with a length that Redis has.
func kindOf(length int64) time.Duration {
	if length >= smoothLength {
		return -time.Duration(length-smoothLength) * time.Second
	}
	return time.Duration(length) * time.Second
}

// appendSpans appends what the script must know of each smooth quota, as it cannot divide
// such numbers: how long the units of the operation, the limit and the burst take to come
// back.
func (op *operation) appendSpans(b []byte) []byte {
	for i := range engine.Of(op.plan).Len() {
		if engine.Of(op.plan).Kind(i) < 0 {
			q := op.plan.Numbers().Bucket(i)
			b = appendU64(b, q.Span(op.cost), q.Span(engine.Of(op.plan).Limit(i)), q.Fill())
		}
	}
	return b
}

// appendSpans is the same for a change: how long its units and the limit take to come back, and
// instead of the burst when the charge was made and when the bucket was full after it.
func (c *change) appendSpans(b []byte) []byte {
	d := &c.charge
	for i := range engine.Of(d.Plan).Len() {
		if engine.Of(d.Plan).Kind(i) > 0 {
			continue
		}
		q, cost := d.Plan.Numbers().Bucket(i), min(d.Cost, fixedwindow.MaxUnits)
		span := q.Span(c.units)
		if c.units < 0 {
			span = q.Span(cost) - q.Span(cost+c.units)
		}
		charge := gcra.ChargeOf(d.Time, d.States[i].Reset, d.Receipt.Rounded[i])
		b = appendU64(appendU64(b, span, q.Span(engine.Of(d.Plan).Limit(i))), charge.At, charge.Full)
	}
	return b
}

func appendU64[T ~uint64](b []byte, numbers ...T) []byte {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// smoothState puts what is left of the plan's i-th quota, which is smooth, into d. Of the
// units that v has as used, unused were used later.
func (v *value) smoothState(d *ratelimit.Decision, i int, unused int64) {
	b, now := d.Plan.Numbers().Bucket(i), gcra.At(d.Time)
	full := now
	for _, w := range v.windows[:v.n] {
		if w.length == engine.Of(d.Plan).Kind(i) {
			full = max(w.full(), now)
		}
	}
	full = b.Uncharged(full, now, unused)
	d.States[i].Remaining = b.Left(full, now)
	d.States[i].Reset, d.Receipt.Rounded[i] = full.RoundUp()
}
