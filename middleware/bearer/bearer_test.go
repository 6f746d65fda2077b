package bearer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
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
		{"scheme alone", []string{"Bearer"}, bearer.Missing},
		{"Basic", []string{"Basic " + good}, bearer.Missing},
		{"a scheme that begins with Bearer", []string{"Bearer2 " + good}, bearer.Missing},
		{"no space", []string{"Bearer" + good}, bearer.Missing},
		{"another scheme first in a list", []string{"Basic eA==, Bearer " + good}, bearer.Missing},

		{"unknown token", []string{"Bearer unknown"}, bearer.Invalid},
		{"HTAB after the scheme", []string{"Bearer\t" + good}, bearer.Invalid},
		{"two tokens", []string{"Bearer " + good + " " + good}, bearer.Invalid},
		{"comma at once", []string{"Bearer," + good}, bearer.Invalid},
		{"padding inside", []string{"Bearer good=token"}, bearer.Invalid},
		{"non-ASCII", []string{"Bearer é"}, bearer.Invalid},
		{"two equal lines", []string{"Bearer " + good, "Bearer " + good}, bearer.Repeated},
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
