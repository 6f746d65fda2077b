package bearer_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

func TestLongTokens(t *testing.T) {
	calls := 0
	auth, err := bearer.New("pets", func(context.Context, string) (user, error) { calls++; return user{}, nil }, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]bearer.Outcome{10_000: bearer.Authenticated, 16 << 10: bearer.Authenticated, 16<<10 + 1: bearer.Invalid} {
		calls = 0
		got := outcome(auth, request("Bearer "+strings.Repeat("a", length)))
		if got != want || (calls == 1) != (want == bearer.Authenticated) {
			t.Errorf("token of %d: %v and %d calls of verify, want %v", length, got, calls, want)
		}
	}
}

// A cause is logged where the service is at fault, and the token never.
func TestLog(t *testing.T) {
	var log strings.Builder
	h := newAuth(t, bearer.Options{Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}}).Protect(http.NotFoundHandler())
	serve(h, request())
	serve(h, request("Bearer unknown"))
	if log.Len() > 0 {
		t.Errorf("a 401 is logged as a failure: %s", log.String())
	}
	w := serve(h, request("Bearer down"))
	if !strings.Contains(log.String(), "connection refused") || strings.Contains(w.Body.String(), "refused") {
		t.Errorf("the log must have the cause of a 503, and the body must not: %q, %q", log.String(), w.Body)
	}
	// A token too long to verify may be a good one.
	log.Reset()
	serve(h, request("Bearer "+strings.Repeat("x", 20_000)))
	if got := log.String(); !strings.Contains(got, "token has more than 16384 bytes: 20000") || strings.Contains(got, "xxx") {
		t.Errorf("log %q, want the length and no token", got)
	}
}

// Observe is given each request without a principal, once, with the reason.
func TestObserve(t *testing.T) {
	type seen struct {
		Outcome bearer.Outcome
		Reason  string
	}
	var got []seen
	auth := newAuth(t, bearer.Options{
		Errors: &apierror.Responder{Logger: slog.New(slog.DiscardHandler)},
		Observe: func(_ *http.Request, o bearer.Outcome, reason error) {
			s := seen{Outcome: o}
			if reason != nil {
				s.Reason = reason.Error()
			}
			got = append(got, s)
		},
	})
	h := auth.Identify(auth.Require(auth.Require(http.NotFoundHandler())))
	for _, lines := range [][]string{
		{"Bearer " + goodToken}, nil, {"Bearer a b"}, {"Bearer unknown"}, {"Bearer down"}, {"Bearer x", "Bearer x"},
		{"Bearer " + strings.Repeat("x", 20_000)},
	} {
		serve(h, request(lines...))
	}
	want := []seen{
		{bearer.Missing, ""},
		{bearer.Invalid, "bearer: Authorization is not Bearer followed by spaces and one b64token"},
		{bearer.Invalid, "token is unknown: bearer: token not valid"},
		{bearer.Unavailable, "connection refused"},
		{bearer.Repeated, "bearer: more than one Authorization line"},
		{bearer.Invalid, "bearer: token has more than 16384 bytes: 20000"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		realm  string
		verify func(context.Context, string) (user, error)
		opts   bearer.Options
		want   string
	}{
		{"no realm", "", verify, bearer.Options{}, "realm"},
		{"quotation mark in the realm", `pe"ts`, verify, bearer.Options{}, "realm"},
		{"non-ASCII in the realm", "Tiergeschäft", verify, bearer.Options{}, "realm"},
		{"no verify function", "pets", nil, bearer.Options{}, "verify"},
		{"token name", "pets", verify, bearer.Options{TokenName: `"`}, "Options.TokenName"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := bearer.New(tt.realm, tt.verify, tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that names %s", err, tt.want)
			}
		})
	}
}
