package bearer_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

func TestTokenElsewhereIsNotLookedAt(t *testing.T) {
	auth := newAuth(bearer.Options{})
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
	repeated := response{400, []string{`Bearer realm="pets", error="invalid_request", error_description="More than one Authorization header was sent"`}, nil,
		`{"code":"invalid_request","message":"The request has more than one Authorization header. Send exactly one.","status":400}`}
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
		{"a tab after the scheme", []string{"Bearer\t" + goodToken}, bearer.Options{}, invalid},
		{"the scheme alone", []string{"Bearer"}, bearer.Options{}, missing},
		{"a scheme that begins with Bearer", []string{"Bearer2 " + goodToken}, bearer.Options{}, missing},
		{"two schemes", []string{"Basic eA==", "Bearer " + goodToken}, bearer.Options{}, repeated},
		{"two lines", []string{"Bearer " + goodToken, "Bearer " + goodToken}, bearer.Options{}, repeated},
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
		{"refused by verify", []string{"Bearer busy"}, bearer.Options{},
			response{429, nil, []string{"2"}, `{"code":"slow_down","message":"Slowly.","status":429}`}},
		{"unavailable, says verify", []string{"Bearer maintained"}, bearer.Options{},
			response{500, nil, []string{"60"}, `{"code":"maintenance","message":"Internal Server Error","status":500}`}},
		{"401 of verify", []string{"Bearer ended"}, bearer.Options{}, invalid},
		{"no error in the error", []string{"Bearer nothing"}, bearer.Options{Errors: quiet}, response{503, nil, []string{"5"}, unavailableBody}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newAuth(tt.opts).Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				u, ok := bearer.FromContext[user](r.Context())
				if !ok {
					t.Error("the handler finds no principal")
				}
				io.WriteString(w, u.name)
			}))
			r := request(tt.lines...)
			r.Body = io.NopCloser(untouched{t})
			w := serve(h, r)
			got := response{w.Code, w.Header()["Www-Authenticate"], w.Header()["Retry-After"], strings.TrimSpace(w.Body.String())}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// Every challenge names the metadata, and no other response does.
func TestResourceMetadata(t *testing.T) {
	for _, metadata := range []string{
		"", "https://api.example/.well-known/oauth-protected-resource", "http://localhost:8080/x?y=z", "http://127.0.0.1/x", "http://[::1]:80/x",
	} {
		parameter := ""
		if metadata != "" {
			parameter = `, resource_metadata="` + metadata + `"`
		}
		h := newAuth(bearer.Options{ResourceMetadata: metadata}).Protect(http.NotFoundHandler())
		for token, want := range map[string]response{
			"":        {Status: 401, Challenge: []string{`Bearer realm="pets"` + parameter}},
			"unknown": {Status: 401, Challenge: []string{`Bearer realm="pets", error="invalid_token", error_description="The API key is not valid"` + parameter}},
			"narrow":  {Status: 403, Challenge: []string{`Bearer realm="pets", error="insufficient_scope"` + parameter}},
			"blocked": {Status: 403},
			goodToken: {Status: 404},
		} {
			w := serve(h, request("Bearer "+token))
			if diff := cmp.Diff(want, response{Status: w.Code, Challenge: w.Header()["Www-Authenticate"]}); diff != "" {
				t.Errorf("metadata %q, token %q (-want +got):\n%s", metadata, token, diff)
			}
		}
	}
}

// A challenge is shared by all responses: what is added to one must not show in
// another.
func TestChallengeIsNotSpoiled(t *testing.T) {
	h := newAuth(bearer.Options{}).Protect(http.NotFoundHandler())
	for range 2 {
		w := serve(h, request())
		w.Header().Add("WWW-Authenticate", `Basic realm="pets"`)
		if diff := cmp.Diff([]string{`Bearer realm="pets"`, `Basic realm="pets"`}, w.Header()["Www-Authenticate"]); diff != "" {
			t.Errorf("challenges (-want +got):\n%s", diff)
		}
	}
}

// A body that must not be read, so that net/http need not send 100 Continue.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestOutcomeString(t *testing.T) {
	var got []string
	for o := range bearer.Outcome(8) {
		got = append(got, o.String())
	}
	want := []string{"unidentified", "authenticated", "missing", "invalid", "unavailable", "repeated", "refused", "unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestLongTokens(t *testing.T) {
	calls := 0
	auth := testcheck.Must(bearer.New("pets", func(context.Context, string) (user, error) { calls++; return user{}, nil }, bearer.Options{}))
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
	h := newAuth(bearer.Options{Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}}).Protect(http.NotFoundHandler())
	serve(h, request())
	serve(h, request("Bearer unknown"))
	serve(h, request("Bearer busy"))
	if log.Len() > 0 {
		t.Errorf("a 401 or 429 is logged as a failure: %s", log.String())
	}
	w := serve(h, request("Bearer down"))
	if !strings.Contains(log.String(), "connection refused") || strings.Contains(w.Body.String(), "refused") {
		t.Errorf("the log must have the cause of a 503, and the body must not: %q, %q", log.String(), w.Body)
	}
	serve(h, request("Bearer maintained"))
	if !strings.Contains(log.String(), "asking: 500 maintenance") {
		t.Errorf("log %q, want the cause of a 500 of the verify function", log.String())
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
	auth := newAuth(bearer.Options{
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
		{"Bearer " + goodToken}, nil, {"Bearer a b"}, {"Bearer unknown"}, {"Bearer down"}, {"Bearer busy"}, {"Bearer x", "Bearer x"},
		{"Bearer " + strings.Repeat("x", 20_000)},
	} {
		serve(h, request(lines...))
	}
	want := []seen{
		{bearer.Missing, ""},
		{bearer.Invalid, "bearer: Authorization is not Bearer followed by spaces and one b64token"},
		{bearer.Invalid, "token is unknown: bearer: token not valid"},
		{bearer.Unavailable, "connection refused"},
		{bearer.Refused, "asking: 429 slow_down: Slowly."},
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
		{"relative metadata", "pets", verify, bearer.Options{ResourceMetadata: "/.well-known/oauth-protected-resource"}, "Options.ResourceMetadata must be an absolute URL"},
		{"no host in the metadata", "pets", verify, bearer.Options{ResourceMetadata: "https:///x"}, "Options.ResourceMetadata must be an absolute URL"},
		{"metadata that ends the string", "pets", verify, bearer.Options{ResourceMetadata: `https://api.example/"x`}, "Options.ResourceMetadata must be an absolute URL"},
		{"metadata with a space", "pets", verify, bearer.Options{ResourceMetadata: "https://api.example/a b"}, "Options.ResourceMetadata must be an absolute URL"},
		{"metadata over http", "pets", verify, bearer.Options{ResourceMetadata: "http://api.example/x"}, "Options.ResourceMetadata must be an https URL"},
		{"metadata over ftp", "pets", verify, bearer.Options{ResourceMetadata: "ftp://localhost/x"}, "Options.ResourceMetadata must be an https URL"},
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

// A call gets the answer of a request, and its observer sees what it sees of a request.
func TestCall(t *testing.T) {
	var log strings.Builder
	var observed []string
	auth := newAuth(bearer.Options{
		Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))},
		Observe: func(r *http.Request, o bearer.Outcome, _ error) {
			observed = append(observed, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+o.String())
		},
	})
	for name, c := range map[string]struct {
		lines    []string
		status   int
		field    string
		observed string
		logged   bool
	}{
		"valid":       {[]string{"Bearer " + goodToken}, 0, "", "", false},
		"missing":     {nil, 401, "Www-Authenticate", "POST /pets.Pets/Get  missing", false},
		"invalid":     {[]string{"Bearer unknown"}, 401, "Www-Authenticate", "POST /pets.Pets/Get Bearer unknown invalid", false},
		"repeated":    {[]string{"Bearer a", "Bearer b"}, 400, "Www-Authenticate", "POST /pets.Pets/Get Bearer a repeated", false},
		"unavailable": {[]string{"Bearer down"}, 503, "Retry-After", "POST /pets.Pets/Get Bearer down unavailable", true},
		"refused":     {[]string{"Bearer busy"}, 429, "Retry-After", "POST /pets.Pets/Get Bearer busy refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			observed = nil
			r := httptest.NewRequest("POST", "/pets.Pets/Get", nil)
			r.Pattern, r.Header["Authorization"] = "/pets.Pets/Get", c.lines
			ctx := auth.IdentifyCall(r.Context(), c.lines, func() *http.Request { return r })
			fields, err := auth.RequireCall(ctx, func() *http.Request { return r.WithContext(ctx) })
			switch {
			case c.status == 0 && err != nil:
				t.Errorf("a valid token is refused: %v", err)
			case c.status == 0:
				if u, ok := bearer.FromContext[user](ctx); !ok || u.name != "ann" {
					t.Errorf("principal %v, %v", u, ok)
				}
			case c.status == 429 && fields.Get("Retry-After") != "2":
				t.Errorf("Retry-After %q, want 1.5 seconds rounded up", fields.Get("Retry-After"))
			case err == nil || err.Status != c.status || len(fields) != 1 || fields.Get(c.field) == "":
				t.Errorf("refused with %v and the fields %v, want %d and %s", err, fields, c.status, c.field)
			}
			if got := strings.Join(observed, ", "); got != c.observed {
				t.Errorf("observed %q, want %q", got, c.observed)
			}
			if logged := strings.Contains(log.String(), "route=/pets.Pets/Get"); logged != c.logged {
				t.Errorf("the log has %q", log.String())
			}
		})
	}
	if fields, err := auth.RequireCall(t.Context(), func() *http.Request { return request() }); err == nil || err.Status != 500 || len(fields) > 0 {
		t.Errorf("without IdentifyCall: %v with the fields %v, want a 500 without any", err, fields)
	}
}

// The grammar of RFC 6750 section 2.1 and RFC 9110 section 11.4, as a regular
// expression.
var grammar = regexp.MustCompile(`^[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)$`)

// A token is found in one line if and only if the line matches the grammar, and
// is then handed on unchanged.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		"", "Bearer", "Bearer ", "Bearer ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/==", "Bearer a=b", "Bearer \ta", "Bearer: a", "Bearer a%20", "bearer   abc==", "Bearer\tabc", "Bearer a b", "Bearer a, Bearer b", "Bearer,a", "Basic eA==, Bearer a", "Bearer     a", " \tBearer a\t ",
		`Bearer "a"`, "Bearer token=a", "Basic YTpi", "Bearer é", "Bearer =", "Bearerabc", " Bearer abc ", "Bearer abc\x00",
	} {
		f.Add(seed)
	}
	var found string
	auth := testcheck.Must(bearer.New("pets", func(_ context.Context, token string) (user, error) {
		found = token
		return user{}, nil
	}, bearer.Options{}))
	h := auth.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	f.Fuzz(func(t *testing.T, value string) {
		want := ""
		if m := grammar.FindStringSubmatch(strings.Trim(value, " \t")); m != nil && len(m[1]) <= 16<<10 {
			want = m[1]
		}
		found = ""
		w := serve(h, request(value))
		if found != want {
			t.Errorf("token of %q is %q, want %q", value, found, want)
		}
		if status := map[bool]int{true: 200, false: 401}[want != ""]; w.Code != status {
			t.Errorf("%q is answered %d, want %d", value, w.Code, status)
		}
		if w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), `Bearer realm="pets"`) {
			t.Errorf("%q is refused with the challenge %q", value, w.Header().Get("WWW-Authenticate"))
		}
	})
}

// discard is a ResponseWriter that allocates nothing once its header has been
// used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// The floor: replacing a request's context is one allocation, and the context
// another.
func TestProtectAllocations(t *testing.T) {
	h := newAuth(bearer.Options{}).Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer.FromContext[user](r.Context())
		bearer.OutcomeFrom(r.Context())
	}))
	w, r := &discard{header: make(http.Header)}, request("Bearer "+goodToken)
	if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got > 2 {
		t.Errorf("a valid request costs %v allocations, want 2 at most", got)
	}
}
