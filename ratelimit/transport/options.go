package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// defaultMaxWait is long enough for a window of a minute and most of a second one.
const defaultMaxWait = 2 * time.Minute

// Options are optional settings. The zero value works.
type Options struct {
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper

	// Key names what the server counts a request for. Requests of one key share
	// pauses and the Plan. Requests with an empty key are sent as if there were no
	// Transport. Nil: the host and, as a digest, the Authorization field. A service
	// that identifies clients in another way, or that has limits of their own for some
	// operations, such as searches, needs a Key that tells them apart. Key must be
	// safe for concurrent use.
	Key func(r *http.Request) string

	// MaxWait is how long a request waits at most, over all its attempts and with Jitter.
	// A request fails at once if the wait that the server names, plus Jitter or a tenth
	// of that wait, whichever is less, is longer. 0: 2 minutes. Negative: requests never
	// wait.
	MaxWait time.Duration

	// Jitter is the longest random time that is added to a wait, so that many clients
	// do not return at the same instant. It doubles with each denial of the same
	// request. MaxWait and the deadline of the request cut it short. 0: a tenth of the
	// wait. Negative: none.
	Jitter time.Duration

	// Plan is a plan of the client's own, which holds before a request is sent;
	// Limiter counts it. Every attempt costs one unit. Requests wait for their turn in
	// the order in which they arrive. Usually it is the plan that the client has at
	// the server; it must have quotas. The subject is "call:" and the key. Set
	// both Plan and Limiter, or neither.
	Plan    *ratelimit.Plan
	Limiter ratelimit.Limiter

	// OnWait is called before a request waits because of an answer of the server, with
	// the time that it will wait. Nil works. OnWait must be safe for concurrent use.
	OnWait func(r *http.Request, wait time.Duration)

	// OnDeprecated is called with the first response to a method and host that has
	// this notice of a deprecation. At most 1000 notices are reported. What is
	// malformed in a notice is left out, and targets of links have no password and no
	// query of the request. Nil: a warning in the log of [slog.Default].
	// OnDeprecated must be safe for concurrent use.
	OnDeprecated func(r *http.Request, n deprecation.Notice)
}

func (o *Options) validate() error {
	switch {
	case o.Base != nil && nilvalue.In(o.Base):
		return fmt.Errorf("transport: Options.Base must not be a nil %T", o.Base)
	case o.Plan != nil && nilvalue.In(o.Limiter):
		return errors.New("transport: Options.Plan needs Options.Limiter, which counts it")
	case o.Plan == nil && o.Limiter != nil:
		return errors.New("transport: Options.Limiter needs Options.Plan")
	case o.Plan != nil && engine.Of(o.Plan).Len() == 0:
		return errors.New("transport: Options.Plan must have quotas")
	}
	return nil
}

// defaultKey returns the host and a digest of the credentials.
func defaultKey(r *http.Request) string {
	credentials := r.Header.Get("Authorization")
	if credentials == "" {
		return r.URL.Host
	}
	digest := sha256.Sum256([]byte(credentials))
	return r.URL.Host + " " + hex.EncodeToString(digest[:8])
}
