package limit

import (
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"
)

// passages notices requests that pass a limit twice, since it is mounted on a router and on
// one of its groups, for instance. That may be wanted, and is known too late for an error of
// New, so that it is logged. Only a middleware that was mounted twice looks at requests, and
// only at the first ones. The field left is all that later requests read.
type passages struct {
	mounts, left atomic.Int32
	last         atomic.Pointer[passage]
}

const firstPassages = 1000

// A passage is a request on its way through the limit. Copies of a request have its header.
type passage struct {
	header  http.Header
	subject string
}

func (p *passages) note(r *http.Request, subject string) {
	before := p.last.Swap(&passage{r.Header, subject})
	twice := before != nil && before.subject == subject &&
		reflect.ValueOf(before.header).UnsafePointer() == reflect.ValueOf(r.Header).UnsafePointer()
	if twice && p.left.Swap(0) > 0 {
		slog.WarnContext(r.Context(), "limit: a request passes the same limit twice, and is charged twice. Mount the middleware once, "+
			"on the router or on its groups", "path", fmt.Sprintf("%.200s", r.URL.Path))
	}
	if p.left.Add(-1) <= 0 {
		p.last.Store(nil)
	}
}
