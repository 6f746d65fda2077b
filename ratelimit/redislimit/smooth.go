package redislimit

import (
	"encoding/binary"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/gcra"
)

// smoothLength is what the length of a smooth quota is more than its window.
const smoothLength = 1 << 31

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

func bucket(plan *ratelimit.Plan, i int) gcra.Bucket {
	interval, burst := plan.Bucket(i)
	return gcra.WithInterval(interval, plan.Limit(i), burst)
}

// appendSpans appends what the script must know of each smooth quota, as it cannot divide
// such numbers: how long the units of the operation, the limit and the burst take to come
// back.
func (op *operation) appendSpans(b []byte) []byte {
	for i := range op.plan.Len() {
		if op.plan.Kind(i) > 0 {
			continue
		}
		units := op.cost
		if op.code == opAddUsage {
			units = op.usage.units[i]
		}
		q := bucket(op.plan, i)
		for _, span := range []uint64{q.Span(units), q.Span(op.plan.Quota(i).Limit), q.Full()} {
			b = binary.BigEndian.AppendUint64(b, span)
		}
	}
	return b
}

// smoothState puts what is left of the plan's i-th quota, which is smooth, into d. Of the
// units that v has as used, unused were used later.
func (v *value) smoothState(d *ratelimit.Decision, i int, unused int64) {
	b, now := bucket(d.Plan, i), gcra.At(d.Time)
	full := now
	for _, w := range v.windows[:v.n] {
		if w.length == d.Plan.Kind(i) {
			full = max(gcra.Of(w.end, uint32(w.used)), now)
		}
	}
	full = b.Refunded(full, now, unused)
	d.States[i].Remaining = b.Left(full, now)
	d.States[i].Reset, d.Rounded[i] = full.RoundUp()
}
