package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
)

// The methods of the services of TestCharges, by who sends a stream. Messages are
// google.protobuf.StringValue.
const (
	Unary        = "/test.Kinds/Unary"
	ClientStream = "/test.Kinds/Client"
	ServerStream = "/test.Kinds/Server"
	BidiStream   = "/test.Kinds/Bidi"
)

// Kinds is a service of an adapter for TestCharges, over HTTP/2 without TLS. A handler
// receives what the client sends until that fails, whatever the error is, and calls Handle. It
// sends the message if the error is nil, or if the method is a stream of the server and the
// message is not empty, and returns the error of that, or else the error.
type Kinds struct {
	Limit
	Never  bool // ChargeIf is always false
	Handle func(ctx context.Context, text string) (message string, err error)
	Done   func() // called when a call has ended, whatever became of it
}

// An End is how a handler ends: with a code, or as Text says.
type End struct {
	Code uint32
	Text string // "EOF", "deadline", "panic" or ""
}

// err returns the error of a handler.
func (e End) err(withCode func(uint32) error) error {
	switch {
	case e.Text == "panic":
		panic("no")
	case e.Text == "EOF":
		return io.EOF
	case e.Text == "deadline":
		return fmt.Errorf("query: %w", context.DeadlineExceeded)
	}
	return withCode(e.Code)
}

const hello = "\x00\x00\x00\x00\x07\x0a\x05hello"

// A client is what a client does.
type client struct {
	name    string
	body    string
	correct []string // methods of which that is correct
	framed  bool     // cannot be done to unary methods of Connect, whose messages are sent alone
	cancels bool
	expires bool      // its deadline comes while the handler runs
	timeout [2]string // of gRPC and Connect
}

var every = []string{Unary, ClientStream, ServerStream, BidiStream}

var clients = []client{
	{name: "correct", body: hello, correct: every},
	{name: "a distant deadline", body: hello, correct: every, timeout: [2]string{"1H", "3600000"}},
	{name: "two messages", body: hello + hello, correct: []string{ClientStream, BidiStream}, framed: true},
	{name: "no message", body: "", framed: true},
	{name: "the end of a stream of Connect", body: "\x02\x00\x00\x00\x02{}", framed: true},
	{name: "an incomplete message", body: hello + "\x00\x00\x00\x00\x07\x0a", framed: true},
	{name: "an incomplete prefix", body: hello + "\x00", framed: true},
	{name: "compression not announced", body: hello + "\x01\x00\x00\x00\x01x", framed: true},
	{name: "not a message", body: "\x00\x00\x00\x00\x07\x0a\x07hello"},
	{name: "cancelled", body: hello, cancels: true},
	{name: "a deadline", body: hello, expires: true, timeout: [2]string{"20m", "20"}},
}

// everyEnd are how handlers end, with whether that is given back: all codes, and what has none.
func everyEnd() map[End]bool {
	all := map[End]bool{{Text: "EOF"}: false, {Text: "deadline"}: false, {Text: "panic"}: true}
	for code := range uint32(17) {
		all[End{Code: code}] = code == 13 || code == 14 || code == 15
	}
	return all
}

// A Kind is how TestCharges gets a service of an adapter.
type Kind struct {
	Protocols []string                // grpc, grpc-web and connect
	WithCode  func(code uint32) error // the error with a code, nil for 0
	Start     func(*testing.T, Kinds) (url string)
}

// A kindsTest is a service and the call that is tested.
type kindsTest struct {
	url     string
	started chan struct{} // by the handler of a client that cancels or has a deadline
	waits   atomic.Bool
	message atomic.Value
	end     atomic.Value
	ended   chan struct{}
	decided atomic.Int64
	used    func(subject string) int64
	calls   int
}

func newKindsTest(t *testing.T, never bool, a Kind) *kindsTest {
	t.Helper()
	engine := NewClock().Engine(t)
	k := &kindsTest{started: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	k.used = func(subject string) int64 { return Used(t, engine, subject, Two) }
	l := Limit{Engine: engine, Identify: func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: r.Header.Get("Subject"), Plan: Two}, nil
	}}
	l.Options.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { k.decided.Add(1) }
	k.url = a.Start(t, Kinds{Limit: l, Never: never, Done: func() { k.ended <- struct{}{} }, Handle: func(ctx context.Context, _ string) (string, error) {
		if k.waits.Load() {
			k.started <- struct{}{}
			<-ctx.Done()
		}
		return k.message.Load().(string), k.end.Load().(End).err(a.WithCode)
	}})
	return k
}

// charged sends one call and returns how much of its decisions stayed charged.
func (k *kindsTest) charged(t *testing.T, protocol, method string, c client, message string, end End) (used, decided int64) {
	t.Helper()
	k.waits.Store(c.cancels || c.expires)
	k.message.Store(message)
	k.end.Store(end)
	k.decided.Store(0)
	k.calls++
	subject := fmt.Sprint("subject", k.calls)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	contentType, body := "application/"+protocol+"+proto", c.body
	if protocol == "connect" && method == Unary {
		contentType, body = "application/proto", strings.ReplaceAll(body, hello, hello[5:])
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url+method, strings.NewReader(body))
	testcheck.NoError(t, err)
	r.Header = http.Header{"Content-Type": {contentType}, "Subject": {subject}}
	if c.timeout[0] != "" {
		r.Header["Grpc-Timeout"], r.Header["Connect-Timeout-Ms"] = c.timeout[:1], c.timeout[1:]
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if res, err := transport.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	if c.cancels {
		<-k.started
		cancel()
	}
	<-k.ended
	<-answered
	select {
	case <-k.started:
	default:
	}
	return k.used(subject), k.decided.Load()
}

// TestCharges tests that what a client can cause stays charged, whatever the handler and
// ChargeIf make of it, and that what only the server causes is given back, for all kinds of
// methods.
func TestCharges(t *testing.T, a Kind) {
	for _, protocol := range a.Protocols {
		for _, method := range every {
			t.Run(protocol+method, func(t *testing.T) {
				m := methodTest{protocol, method, newKindsTest(t, false, a), newKindsTest(t, true, a)}
				for _, c := range clients {
					if unframed := protocol == "connect" && method == Unary; unframed && c.framed {
						continue
					}
					m.test(t, c)
				}
				m.testServerFaults(t)
			})
		}
	}
}

// A methodTest has two services of a protocol, and the method that is called.
type methodTest struct {
	protocol, method string

	fair  *kindsTest // gives back what the server has failed to serve
	never *kindsTest // ChargeIf is always false
}

// test calls the method with a handler that ends in every way. It sends calls that are not
// correct only to handlers that end as if it was the fault of the server.
func (m methodTest) test(t *testing.T, c client) {
	t.Helper()
	for end, back := range everyEnd() {
		switch {
		case slices.Contains(c.correct, m.method):
			if used, decided := m.fair.charged(t, m.protocol, m.method, c, "hello", end); decided != 1 || (used == 0) != back {
				t.Errorf("%s, and the handler ends with %+v: %d of %d units stay charged, given back: %t", c.name, end, used, decided, back)
			}
		case back || end.Text == "EOF":
			if used, decided := m.never.charged(t, m.protocol, m.method, c, "hello", end); used != decided {
				t.Errorf("%s, and the handler ends with %+v: %d of %d units stay charged", c.name, end, used, decided)
			}
		}
	}
}

// testServerFaults makes correct calls whose response is not UTF-8, which cannot be sent, or
// ends with a deadline that the client has not set.
func (m methodTest) testServerFaults(t *testing.T) {
	t.Helper()
	for end, message := range map[End]string{{}: "\xff", {Code: 4}: "hello", {Text: "deadline"}: "hello"} {
		used, decided := m.never.charged(t, m.protocol, m.method, clients[0], message, end)
		if encodedLater := m.method == Unary && message == "\xff"; (used != 1 || decided != 1) && !encodedLater {
			t.Errorf("%q and %+v: %d of %d units stay charged", message, end, used, decided)
		}
	}
}
