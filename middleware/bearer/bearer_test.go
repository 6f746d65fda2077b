package bearer_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/google/go-cmp/cmp"
)

func TestCredentials(t *testing.T) {
	const good = goodToken
	tests := []struct {
		name  string
		lines []string
		want  bearer.Outcome
	}{
		{"valid", []string{"Bearer " + good}, bearer.Authenticated},
		{"scheme in mixed case", []string{"bEaReR " + good}, bearer.Authenticated},
		{"five spaces", []string{"Bearer     " + good}, bearer.Authenticated},
		{"white space around the value", []string{" \tBearer " + good + "\t "}, bearer.Authenticated},

		{"no field", nil, bearer.Missing},
		{"empty", []string{""}, bearer.Missing},
		{"white space only", []string{" \t "}, bearer.Missing},
		{"scheme alone", []string{"Bearer"}, bearer.Missing},
		{"scheme and a space", []string{"Bearer "}, bearer.Missing},
		{"Basic", []string{"Basic " + good}, bearer.Missing},
		{"a scheme that begins with Bearer", []string{"Bearer2 " + good}, bearer.Missing},
		{"no space", []string{"Bearer" + good}, bearer.Missing},
		{"token alone", []string{good}, bearer.Missing},
		{"another scheme first in a list", []string{"Basic eA==, Bearer " + good}, bearer.Missing},

		{"unknown token", []string{"Bearer unknown"}, bearer.Invalid},
		{"null", []string{"Bearer null"}, bearer.Invalid},
		{"HTAB after the scheme", []string{"Bearer\t" + good}, bearer.Invalid},
		{"HTAB after a space", []string{"Bearer \t" + good}, bearer.Invalid},
		{"two tokens", []string{"Bearer " + good + " " + good}, bearer.Invalid},
		{"list", []string{"Bearer " + good + ", Bearer " + good}, bearer.Invalid},
		{"quoted", []string{`Bearer "` + good + `"`}, bearer.Invalid},
		{"parameter", []string{"Bearer token=" + good}, bearer.Invalid},
		{"comma at once", []string{"Bearer," + good}, bearer.Invalid},
		{"colon", []string{"Bearer: " + good}, bearer.Invalid},
		{"padding only", []string{"Bearer =="}, bearer.Invalid},
		{"padding inside", []string{"Bearer good=token"}, bearer.Invalid},
		{"padding added", []string{"Bearer " + good + "="}, bearer.Invalid},
		{"percent encoding", []string{"Bearer " + good + "%20"}, bearer.Invalid},
		{"upper case", []string{"Bearer " + strings.ToUpper(good)}, bearer.Invalid},
		{"non-ASCII", []string{"Bearer é"}, bearer.Invalid},
		{"NUL", []string{"Bearer " + good + "\x00"}, bearer.Invalid},
		{"two equal lines", []string{"Bearer " + good, "Bearer " + good}, bearer.Repeated},
		{"valid line, then another", []string{"Bearer " + good, "Bearer unknown"}, bearer.Repeated},
		{"empty line, then a valid one", []string{"", "Bearer " + good}, bearer.Repeated},
		{"two schemes", []string{"Basic eA==", "Bearer " + good}, bearer.Repeated},

		{"store is down", []string{"Bearer down"}, bearer.Unavailable},
	}
	auth := newAuth(t, bearer.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := outcome(auth, request(tt.lines...)); got != tt.want {
				t.Errorf("Authorization %q: %v, want %v", tt.lines, got, tt.want)
			}
		})
	}
}

func TestEveryCharacterOfB64Token(t *testing.T) {
	const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=="
	var got string
	auth, err := bearer.New("pets", func(_ context.Context, token string) (user, error) {
		got = token
		return user{}, nil
	}, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	serve(auth.Protect(http.NotFoundHandler()), request("Bearer "+token))
	if got != token {
		t.Errorf("the verify function is given %q, want the whole b64token %q", got, token)
	}
}

func TestTokenElsewhereIsNotLookedAt(t *testing.T) {
	auth := newAuth(t, bearer.Options{})
	const form = "access_token=" + goodToken
	requests := map[string]*http.Request{
		"query":    httptest.NewRequest("GET", "/v1/pets?"+form, nil),
		"body":     httptest.NewRequest("POST", "/v1/pets", strings.NewReader(form)),
		"userinfo": httptest.NewRequest("GET", "http://"+goodToken+":@localhost/v1/pets", nil),
	}
	requests["body"].Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for field, value := range map[string]string{
		"X-API-Key": goodToken, "Cookie": form, "Proxy-Authorization": "Bearer " + goodToken,
	} {
		r := request()
		r.Header.Set(field, value)
		requests[field] = r
	}
	for where, r := range requests {
		if got := outcome(auth, r); got != bearer.Missing {
			t.Errorf("a token in %s: %v, want missing", where, got)
		}
	}
}

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

// response is the part of a response that this package decides.
type response struct {
	Status     int
	Challenge  []string
	RetryAfter []string
	Body       string
}

func TestProtect(t *testing.T) {
	const (
		missingBody     = `{"code":"missing_api_key","message":"No API key was sent. Send it as Authorization: Bearer <API key>.","status":401}`
		invalidBody     = `{"code":"invalid_api_key","message":"The API key is not valid.","status":401}`
		unavailableBody = `{"code":"unavailable","message":"The API key cannot be checked at the moment. Wait as long as Retry-After says.","status":503}`
	)
	missing := response{401, []string{`Bearer realm="pets"`}, nil, missingBody}
	invalid := response{401, []string{`Bearer realm="pets", error="invalid_token", error_description="The API key is not valid"`}, nil, invalidBody}
	quiet := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	tests := []struct {
		name  string
		lines []string
		opts  bearer.Options
		want  response
	}{
		{"valid", []string{"Bearer " + goodToken}, bearer.Options{}, response{200, nil, nil, "ann"}},
		{"missing", nil, bearer.Options{}, missing},
		{"other scheme", []string{"Basic eA=="}, bearer.Options{}, missing},
		{"unknown", []string{"Bearer unknown"}, bearer.Options{}, invalid},
		{"malformed", []string{"Bearer a b"}, bearer.Options{}, invalid},
		{"two lines", []string{"Bearer " + goodToken, "Bearer " + goodToken}, bearer.Options{}, response{400,
			[]string{`Bearer realm="pets", error="invalid_request", error_description="More than one Authorization header was sent"`}, nil,
			`{"code":"invalid_request","message":"The request has more than one Authorization header. Send exactly one.","status":400}`}},
		{"described otherwise", []string{"Bearer unknown"}, bearer.Options{Description: "Sorry [1]!"},
			response{401, []string{`Bearer realm="pets", error="invalid_token", error_description="Sorry [1]!"`}, nil, invalidBody}},
		{"named otherwise, missing", nil, bearer.Options{TokenName: "admin token"},
			response{401, []string{`Bearer realm="pets"`}, nil,
				`{"code":"missing_api_key","message":"No admin token was sent. Send it as Authorization: Bearer <admin token>.","status":401}`}},
		{"named otherwise, unknown", []string{"Bearer unknown"}, bearer.Options{TokenName: "admin token"},
			response{401, []string{`Bearer realm="pets", error="invalid_token", error_description="The admin token is not valid"`}, nil,
				`{"code":"invalid_api_key","message":"The admin token is not valid.","status":401}`}},
		{"named otherwise, unavailable", []string{"Bearer down"}, bearer.Options{Errors: quiet, TokenName: "admin token"},
			response{503, nil, []string{"5"},
				`{"code":"unavailable","message":"The admin token cannot be checked at the moment. Wait as long as Retry-After says.","status":503}`}},
		{"unavailable", []string{"Bearer down"}, bearer.Options{Errors: quiet},
			response{503, nil, []string{"5"}, unavailableBody}},
		{"unavailable for less than a second", []string{"Bearer down"}, bearer.Options{Errors: quiet, RetryAfter: time.Millisecond},
			response{503, nil, []string{"1"}, unavailableBody}},
		{"unavailable for more than a second", []string{"Bearer down"}, bearer.Options{Errors: quiet, RetryAfter: 1001 * time.Millisecond},
			response{503, nil, []string{"2"}, unavailableBody}},
		{"unavailable for 30 seconds", []string{"Bearer down"}, bearer.Options{Errors: quiet, RetryAfter: 30 * time.Second},
			response{503, nil, []string{"30"}, unavailableBody}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newAuth(t, tt.opts).Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				u, ok := bearer.FromContext[user](r.Context())
				if !ok {
					t.Error("the handler finds no principal")
				}
				io.WriteString(w, u.name)
			}))
			w := serve(h, request(tt.lines...))
			got := response{w.Code, w.Header()["Www-Authenticate"], w.Header()["Retry-After"], strings.TrimSpace(w.Body.String())}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// A challenge is shared by all responses: what is added to one must not show in
// another.
func TestChallengeIsNotSpoiled(t *testing.T) {
	h := newAuth(t, bearer.Options{}).Protect(http.NotFoundHandler())
	for range 2 {
		w := serve(h, request())
		w.Header().Add("WWW-Authenticate", `Basic realm="pets"`)
		if diff := cmp.Diff([]string{`Bearer realm="pets"`, `Basic realm="pets"`}, w.Header()["Www-Authenticate"]); diff != "" {
			t.Errorf("challenges (-want +got):\n%s", diff)
		}
	}
}

// What stands between Identify and Require sees every request with its outcome.
func TestBetweenIdentifyAndRequire(t *testing.T) {
	auth := newAuth(t, bearer.Options{Errors: &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}})
	type seen struct {
		Outcome   bearer.Outcome
		Name      string
		Principal bool
	}
	var got seen
	between := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u, ok := bearer.FromContext[user](r.Context())
			got = seen{bearer.OutcomeFrom(r.Context()), u.name, ok}
			next.ServeHTTP(w, r)
		})
	}
	h := auth.Identify(between(auth.Require(http.NotFoundHandler())))
	for _, tt := range []struct {
		lines  []string
		want   seen
		status int
	}{
		{[]string{"Bearer " + goodToken}, seen{bearer.Authenticated, "ann", true}, 404},
		{nil, seen{bearer.Missing, "", false}, 401},
		{[]string{"Bearer unknown"}, seen{bearer.Invalid, "", false}, 401},
		{[]string{"Bearer down"}, seen{bearer.Unavailable, "", false}, 503},
	} {
		w := serve(h, request(tt.lines...))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Authorization %q, seen in between (-want +got):\n%s", tt.lines, diff)
		}
		if w.Code != tt.status {
			t.Errorf("Authorization %q: answered %d, want %d", tt.lines, w.Code, tt.status)
		}
	}
}

func TestRequireFailsClosed(t *testing.T) {
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	auth, other := newAuth(t, bearer.Options{Errors: rs}), newAuth(t, bearer.Options{Errors: rs})
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	for name, h := range map[string]http.Handler{
		"without Identify":                     auth.Require(never),
		"inside of another one's Identify":     other.Identify(auth.Require(never)),
		"inside of both, the other innermost":  auth.Identify(other.Identify(auth.Require(never))),
		"inside of one with another principal": otherType(t).Identify(auth.Require(never)),
	} {
		if w := serve(h, request("Bearer "+goodToken)); w.Code != 500 {
			t.Errorf("Require %s: answered %d, want 500", name, w.Code)
		}
	}
}

func otherType(t *testing.T) *bearer.Authenticator[string] {
	auth, err := bearer.New("admin", func(context.Context, string) (string, error) { return "root", nil }, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

// Principals of two types live side by side; the outcome is that of the
// innermost.
func TestTwoAuthenticators(t *testing.T) {
	h := newAuth(t, bearer.Options{}).Identify(otherType(t).Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := bearer.FromContext[user](r.Context()); ok {
			t.Error("a user is found for an unknown token")
		}
		if name, ok := bearer.FromContext[string](r.Context()); !ok || name != "root" {
			t.Errorf("string principal %q, %v, want root", name, ok)
		}
		if got := bearer.OutcomeFrom(r.Context()); got != bearer.Authenticated {
			t.Errorf("outcome %v, want that of the innermost authenticator", got)
		}
	})))
	serve(h, request("Bearer unknown"))
}

// named is what some principals are, whatever their type.
type named interface{ Name() string }

func (u user) Name() string { return u.name }

func TestPrincipalByInterface(t *testing.T) {
	found := func(h func(http.Handler) http.Handler, authorization string) (name string) {
		serve(h(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, ok := bearer.FromContext[named](r.Context()); ok {
				name = p.Name()
			} else if p != nil {
				t.Errorf("principal %v, but not found", p)
			}
		})), request(authorization))
		return name
	}
	users, strings := newAuth(t, bearer.Options{}), otherType(t)
	both := func(outer, inner func(http.Handler) http.Handler) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler { return outer(inner(next)) }
	}
	for name, tt := range map[string]struct {
		wrap          func(http.Handler) http.Handler
		authorization string
		want          string
	}{
		"a type that implements it":                {users.Identify, "Bearer " + goodToken, "ann"},
		"a type that does not":                     {strings.Identify, "Bearer " + goodToken, ""},
		"inside of a type that does not":           {both(strings.Identify, users.Identify), "Bearer " + goodToken, "ann"},
		"outside of a type that does not":          {both(users.Identify, strings.Identify), "Bearer " + goodToken, "ann"},
		"a token that is not valid":                {users.Identify, "Bearer unknown", ""},
		"no authenticator":                         {func(next http.Handler) http.Handler { return next }, "Bearer " + goodToken, ""},
		"not valid, outside of a type without one": {both(users.Identify, strings.Identify), "Bearer unknown", ""},
	} {
		if got := found(tt.wrap, tt.authorization); got != tt.want {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
	}
}

func TestContextWithoutIdentify(t *testing.T) {
	if got := bearer.OutcomeFrom(context.Background()); got != bearer.Unidentified {
		t.Errorf("outcome %v, want unidentified", got)
	}
	if u, ok := bearer.FromContext[user](context.Background()); ok || u != (user{}) {
		t.Errorf("principal %v, %v, want none", u, ok)
	}
}

func TestContextIsThatOfTheRequest(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	auth, err := bearer.New("pets", func(ctx context.Context, _ string) (user, error) {
		if ctx.Value(key{}) != "value" {
			t.Error("verify does not get the request's context")
		}
		return user{}, nil
	}, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(key{}) != "value" {
			t.Error("the handler's context lacks the values of the request's")
		}
		inner, cancelInner := context.WithCancel(r.Context())
		defer cancelInner()
		cancel()
		<-inner.Done()
	}))
	serve(h, request("Bearer x").WithContext(ctx))
}

// A refused request leaves its body alone, so that net/http need not send
// 100 Continue.
func TestBodyIsNotTouched(t *testing.T) {
	h := newAuth(t, bearer.Options{Errors: &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}}).Protect(http.NotFoundHandler())
	for _, lines := range [][]string{nil, {"Bearer unknown"}, {"Bearer down"}} {
		r := httptest.NewRequest("POST", "/v1/pets", untouched{t})
		r.Header["Authorization"] = lines
		serve(h, r)
	}
}

type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
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
		{"description", "pets", verify, bearer.Options{Description: `"`}, "Options.Description"},
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

func TestErrInvalidAnywhereInTheTree(t *testing.T) {
	auth, err := bearer.New("pets", func(context.Context, string) (user, error) {
		return user{"ann"}, errors.Join(errors.New("other"), bearer.ErrInvalid)
	}, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	serve(auth.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := bearer.OutcomeFrom(r.Context()); got != bearer.Invalid {
			t.Errorf("outcome %v, want invalid", got)
		}
		if u, ok := bearer.FromContext[user](r.Context()); ok || u != (user{}) {
			t.Errorf("principal %v beside an error, want none", u)
		}
	})), request("Bearer x"))
}

func TestOutcomeString(t *testing.T) {
	var got []string
	for o := range bearer.Outcome(7) {
		got = append(got, o.String())
	}
	want := []string{"unidentified", "authenticated", "missing", "invalid", "unavailable", "repeated", "unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
