package bearer_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

func TestMaxToken(t *testing.T) {
	calls := 0
	verify := func(context.Context, string) (user, error) { calls++; return user{}, nil }
	for _, tt := range []struct {
		max, length int
		verified    bool
	}{{0, 16 << 10, true}, {0, 16<<10 + 1, false}, {10, 10, true}, {10, 11, false}, {1000, 1000, true}} {
		auth, err := bearer.New("pets", verify, bearer.Options{MaxToken: tt.max})
		if err != nil {
			t.Fatal(err)
		}
		calls = 0
		got := outcome(auth, request("Bearer "+strings.Repeat("a", tt.length)))
		want := map[bool]bearer.Outcome{true: bearer.Authenticated, false: bearer.Invalid}[tt.verified]
		if got != want || (calls == 1) != tt.verified {
			t.Errorf("MaxToken %d, token of %d: %v and %d calls of verify, want %v", tt.max, tt.length, got, calls, want)
		}
	}
}

// A JWT that lists 200 groups by their UUIDs is one that services meet.
func TestLargeJWTIsVerified(t *testing.T) {
	claims, err := json.Marshal(map[string]any{
		"iss": "https://login.example.com/", "sub": "ann", "aud": "pets", "exp": 1795000000,
		"groups": slices.Repeat([]string{"6f1c2a58-0c1e-4c4e-9f0b-3d6c1f2a7b90"}, 200),
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"RS256","typ":"JWT","kid":"1"}`)) + "." + encode(claims) + "." + encode(make([]byte, 256))
	if len(token) < 10_000 {
		t.Fatalf("the token has %d bytes, so that this test proves nothing", len(token))
	}
	var got string
	auth, err := bearer.New("pets", func(_ context.Context, token string) (user, error) {
		got = token
		return user{"ann"}, nil
	}, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := outcome(auth, request("Bearer "+token)); o != bearer.Authenticated || got != token {
		t.Errorf("a JWT of %d bytes: %v, and verify is given %d bytes; want it verified whole", len(token), o, len(got))
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
	if !strings.Contains(log.String(), "connection refused") {
		t.Errorf("log %q lacks the cause of a 503", log.String())
	}
	if strings.Contains(w.Body.String(), "refused") {
		t.Errorf("body %q tells the cause", w.Body)
	}
}

// A token too long to verify may be a good one: its refusal is logged with the
// length and the option, and without the token.
func TestTooLongIsLogged(t *testing.T) {
	var log strings.Builder
	h := newAuth(t, bearer.Options{
		MaxToken: 8, Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))},
	}).Protect(http.NotFoundHandler())
	if w := serve(h, request("Bearer "+goodToken)); w.Code != 401 {
		t.Errorf("a token over MaxToken is answered %d, want 401", w.Code)
	}
	if got := log.String(); !strings.Contains(got, "Options.MaxToken: 10 bytes, limit 8") || strings.Contains(got, goodToken) {
		t.Errorf("log %q, want the length, the limit and no token", got)
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
		MaxToken: 10,
		Errors:   &apierror.Responder{Logger: slog.New(slog.DiscardHandler)},
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
		{"Bearer " + strings.Repeat("x", 11)},
	} {
		serve(h, request(lines...))
	}
	want := []seen{
		{bearer.Missing, ""},
		{bearer.Invalid, "bearer: Authorization is not Bearer followed by spaces and one b64token"},
		{bearer.Invalid, "token is unknown: bearer: token not valid"},
		{bearer.Unavailable, "connection refused"},
		{bearer.Repeated, "bearer: more than one Authorization line"},
		{bearer.Invalid, "bearer: token exceeds Options.MaxToken: 11 bytes, limit 10"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		realm  string
		verify bearer.VerifyFunc[user]
		opts   bearer.Options
		want   string
	}{
		{"no realm", "", verify, bearer.Options{}, "realm"},
		{"quotation mark in the realm", `pe"ts`, verify, bearer.Options{}, "realm"},
		{"backslash in the realm", `pe\ts`, verify, bearer.Options{}, "realm"},
		{"line feed in the realm", "pets\nX: y", verify, bearer.Options{}, "realm"},
		{"non-ASCII in the realm", "Tiergeschäft", verify, bearer.Options{}, "realm"},
		{"no verify function", "pets", nil, bearer.Options{}, "verify"},
		{"token length", "pets", verify, bearer.Options{MaxToken: -1}, "Options.MaxToken"},
		{"token name", "pets", verify, bearer.Options{TokenName: `"`}, "Options.TokenName"},
		{"retry", "pets", verify, bearer.Options{RetryAfter: -1}, "Options.RetryAfter"},
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
