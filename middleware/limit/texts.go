package limit

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// texts are header fields and errors of a plan that many responses share. A nil *texts
// keeps nothing.
type texts struct {
	policy string                   // RateLimit-Policy
	names  [engine.MaxQuotas]string // of the quotas in RateLimit

	// denials are the errors of limited requests, kept for floods of such requests: by the
	// set of quotas that refuse, and the strikes left, plus one.
	denials [1 << engine.MaxQuotas]atomic.Pointer[[maxCachedStrikes + 2]atomic.Pointer[cachedDenial]]
}

const maxCachedStrikes = 30

type cachedDenial struct {
	applicable int // the quota in the text
	err        *apierror.Error
}

// once is what a plan has after the first response that needs texts. A service may make a plan
// for each request, and texts would be made for nothing then.
var once = new(texts)

// textsOf returns the texts of a plan, or nil for the first response that needs them.
func textsOf(p *ratelimit.Plan) *texts {
	slot := &p.Numbers().Texts
	t, _ := slot.Load().(*texts)
	switch t {
	case nil:
		slot.CompareAndSwap(nil, once)
		return nil
	case once:
		t = newTexts(p)
		slot.CompareAndSwap(once, t)
	}
	return t
}

func newTexts(p *ratelimit.Plan) *texts {
	t := new(texts)
	var policy strings.Builder
	for i, q := range p.Quotas() {
		t.names[i] = policyName(p, i)
		if hidden(p, i) {
			continue
		}
		if policy.Len() > 0 {
			policy.WriteString(", ")
		}
		policy.WriteString(`"` + t.names[i] + `";q=` + strconv.FormatInt(min(q.Limit, maxInteger), 10))
		if !fixedwindow.IsCalendar(q.Window) {
			policy.WriteString(";w=" + strconv.FormatInt(int64(q.Window/time.Second), 10))
		}
	}
	t.policy = policy.String()
	return t
}

// denial returns the error of a limited request of one unit, with at most maxCachedStrikes
// strikes left.
func (t *texts) denial(d *ratelimit.Decision) *apierror.Error {
	slot := &t.denials[refusing(d)]
	table := slot.Load()
	if table == nil {
		slot.CompareAndSwap(nil, new([maxCachedStrikes + 2]atomic.Pointer[cachedDenial]))
		table = slot.Load()
	}
	kept := &table[max(d.StrikesLeft, -1)+1]
	if k := kept.Load(); k != nil && k.applicable == d.Applicable {
		return k.err
	}
	e := limitedError(d, false).Preencoded()
	kept.Store(&cachedDenial{d.Applicable, e})
	return e
}
