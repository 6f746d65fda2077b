package apierror_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
)

var (
	petNotFound = apierror.New(http.StatusNotFound, "pet_not_found", "There is no pet with this identifier.")
	invalidBody = apierror.New(http.StatusBadRequest, "invalid_body", "The body breaks its schema.").Preencoded().WithDetails(
		apierror.Detail{Pointer: "/name", Detail: "is required"},
		apierror.Detail{Pointer: "", Detail: "has members that are not text: <ä>"},
	)
)

var quotaExceeded = (&apierror.Error{
	Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Message: "Wait.",
	ProblemType:  "https://iana.org/assignments/http-problem-types#quota-exceeded",
	ProblemTitle: "Quota Exceeded", ViolatedPolicies: []string{"minute", "day"},
}).Preencoded()

const secret = "password=hunter2"

// failing answers every request with err.
func failing(rs *apierror.Responder, err error) http.Handler {
	return rs.Handle(func(http.ResponseWriter, *http.Request) error { return err })
}

func TestBodies(t *testing.T) {
	const problem = "application/problem+json"
	for _, tt := range []struct {
		file        string
		err         error
		accept      []string
		wantStatus  int
		wantContent string
	}{
		{"pet_not_found.json", petNotFound, nil, 404, "application/json"},
		{"pet_not_found.json", petNotFound, []string{"*/*"}, 404, "application/json"},
		{"pet_not_found.json", fmt.Errorf("find: %w", petNotFound.Wrap(errors.New(secret))), nil, 404, "application/json"},
		{"pet_not_found.json", errors.Join(errors.New(secret), petNotFound), nil, 404, "application/json"},
		{"pet_not_found_problem.json", petNotFound, []string{problem}, 404, problem},
		{"pet_not_found_problem.json", petNotFound, []string{"application/json;q=0.5", problem}, 404, problem},
		{"invalid_body.json", invalidBody, nil, 400, "application/json"},
		{"invalid_body_problem.json", invalidBody, []string{problem}, 400, problem},
		{"quota_exceeded.json", quotaExceeded, nil, 429, "application/json"},
		{"quota_exceeded_problem.json", quotaExceeded, []string{problem}, 429, problem},
		{"internal.json", errors.New(secret), nil, 500, "application/json"},
		{"internal_problem.json", errors.New(secret), []string{problem}, 500, problem},
		{"internal.json", (*apierror.Error)(nil), nil, 500, "application/json"},
		{"internal.json", apierror.New(200, "not_found", secret), nil, 500, "application/json"},
		{"internal.json", apierror.New(600, "not_found", secret), nil, 500, "application/json"},
		{"internal.json", apierror.New(404, "", secret), nil, 500, "application/json"},
		{"no_message.json", apierror.New(409, "conflict", ""), nil, 409, "application/json"},
		{"no_phrase_problem.json", apierror.New(499, "client_closed_request", ""), []string{problem}, 499, problem},
	} {
		t.Run(fmt.Sprint(tt.file, " ", tt.err, " ", tt.accept), func(t *testing.T) {
			var logs logbook
			srv := serve(t, failing(&apierror.Responder{Logger: logs.logger()}, tt.err))
			var fields []string
			for _, line := range tt.accept {
				fields = append(fields, "Accept", line)
			}
			res := do(t, srv, http.MethodGet, "/", fields...)

			golden(t, tt.file, res.body)
			if strings.Contains(res.body, secret) {
				t.Errorf("the client was told a private text: %s", res.body)
			}
			if res.StatusCode != tt.wantStatus {
				t.Errorf("status %d, want %d", res.StatusCode, tt.wantStatus)
			}
			if got := res.Header.Get("Content-Type"); got != tt.wantContent {
				t.Errorf("Content-Type %q, want %q", got, tt.wantContent)
			}
			var members struct{ Status int }
			if err := json.Unmarshal([]byte(res.body), &members); err != nil || members.Status != tt.wantStatus {
				t.Errorf("the body's status is %d (%v), want that of the response, %d", members.Status, err, tt.wantStatus)
			}
			if tt.wantStatus == 500 && !strings.Contains(logs.String(), `"level":"ERROR"`) {
				t.Errorf("the cause of a 500 is not in the log as an error: %s", &logs)
			}
		})
	}
}

func TestHeaderSection(t *testing.T) {
	set := func(h http.Header) {
		h.Set("X-RateLimit-Remaining", "59")
		h.Set("Retry-After", "17")
		h["x-pets"] = []string{"1"}
		h.Add("Link", `<https://example.com/a>; rel="sunset"`)
		h.Add("Link", `<https://example.com/b>; rel="deprecation"`)
		// What the handler meant to send and will not.
		for _, name := range []string{
			"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition", "ETag", "Last-Modified", "Expires",
			"Cache-Control", "X-Content-Type-Options", "Transfer-Encoding", "Content-Range", "Content-Language", "Content-Location", "Content-MD5", "Content-Digest", "Repr-Digest", "Digest",
			"CDN-Cache-Control", "Surrogate-Control", "Cloudflare-CDN-Cache-Control", "Age", "No-Vary-Search",
			"X-LiteSpeed-Cache-Control", "Edge-Control", "Unencoded-Digest",
			"X-Accel-Expires", "X-Accel-Redirect", "X-Sendfile", "Trailer", "Signature", "Signature-Input", "Use-As-Dictionary",
		} {
			h.Set(name, "of the success")
			h[strings.ToLower(name)] = []string{"of the success"} // net/http sends it as well
		}
	}
	var rs *apierror.Responder // nil works
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set(w.Header())
		rs.Respond(w, r, petNotFound)
	}))

	get, head := do(t, srv, http.MethodGet, "/"), do(t, srv, http.MethodHead, "/")
	want := http.Header{
		"X-Ratelimit-Remaining":  {"59"},
		"Retry-After":            {"17"},
		"X-Pets":                 {"1"},
		"Link":                   {`<https://example.com/a>; rel="sunset"`, `<https://example.com/b>; rel="deprecation"`},
		"Content-Type":           {"application/json"},
		"Content-Length":         {strconv.Itoa(len(get.body))},
		"Cache-Control":          {"no-store"},
		"X-Content-Type-Options": {"nosniff"},
		"Vary":                   {"Accept"},
	}
	for name, res := range map[string]response{"GET": get, "HEAD": head} {
		res.Header.Del("Date")
		if diff := cmp.Diff(want, res.Header); diff != "" {
			t.Errorf("header section of the answer to %s (-want +got):\n%s", name, diff)
		}
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", name, res.StatusCode)
		}
	}
}

// Trailers that the handler has set for its success are not sent after the error.
func TestTrailersOfTheSuccess(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		srv := serve(t, new(apierror.Responder).Handle(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Trailer", "Signature")
			w.Header().Set(http.TrailerPrefix+"X-Rows", "17")
			return petNotFound
		}), http2)
		if res := do(t, srv, http.MethodGet, "/"); res.StatusCode != http.StatusNotFound || len(res.Trailer) > 0 {
			t.Errorf("http2=%t: status %d with the trailers %v, want 404 without trailers", http2, res.StatusCode, res.Trailer)
		}
	}
}

// What Write writes is the response, after the fields of every error are set. What it
// leaves is sent as always, with the text of Translate.
func TestWriteAndTranslate(t *testing.T) {
	busy := &apierror.Error{Status: 503, Code: "busy", Message: "Busy.", RetryAfter: 1001 * time.Millisecond, Args: map[string]any{"place": 7}}
	rs := &apierror.Responder{
		Logger: slog.New(slog.DiscardHandler),
		Translate: func(r *http.Request, e *apierror.Error) string {
			if r.URL.Path == "/english" {
				return ""
			}
			return fmt.Sprint(e.Code, " auf Deutsch ", e.Args)
		},
		Write: func(w http.ResponseWriter, r *http.Request, e *apierror.Error) {
			if r.URL.Path == "/page" {
				w.WriteHeader(e.Status)
				fmt.Fprint(w, "<p>", e.Message) // of which net/http knows the type
				return
			}
			for _, name := range []string{"Content-Encoding", "ETag", "Cache-Control", "Content-Type"} {
				w.Header().Set(name, "of what Write has not written")
			}
		},
	}
	srv := serve(t, rs.Recover(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"success"`)
		w.Header().Set("Content-Length", "7")
		w.Header().Set("Content-Type", "image/png")
		switch r.URL.RawQuery {
		case "panic":
			panic("no")
		case "retry":
			w.Header().Set("Retry-After", "9")
		case "whole":
			busy.RetryAfter = 2 * time.Second
		}
		rs.Respond(w, r, busy.Preencoded())
	})))
	for _, tt := range []struct{ target, status, content, retry, body string }{
		{"/page", "503", "text/html; charset=utf-8", "2", "<p>busy auf Deutsch map[place:7]"},
		{"/page?panic", "500", "text/html; charset=utf-8", "", "<p>internal auf Deutsch map[]"},
		{"/", "503", "application/json", "2", `{"code":"busy","message":"busy auf Deutsch map[place:7]","status":503}` + "\n"},
		{"/english?retry", "503", "application/json", "9", `{"code":"busy","message":"Busy.","status":503}` + "\n"},
		{"/english?whole", "503", "application/json", "2", `{"code":"busy","message":"Busy.","status":503}` + "\n"},
	} {
		res := do(t, srv, http.MethodGet, tt.target)
		got := []string{fmt.Sprint(res.StatusCode), res.Header.Get("Content-Type"), res.Header.Get("Retry-After"), res.body}
		if diff := cmp.Diff([]string{tt.status, tt.content, tt.retry, tt.body}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.target, diff)
		}
		if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Etag") != "" || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: the response has the fields %v", tt.target, res.Header)
		}
	}
}

// Only a 416 may have a Content-Range, and only one that tells the length.
func TestContentRange(t *testing.T) {
	for _, tt := range []struct {
		status int
		value  string
		want   bool
	}{{416, "bytes */1234", true}, {416, "bytes 0-9/1234", false}, {404, "bytes */1234", false}} {
		rec := httptest.NewRecorder()
		rec.Header().Set("Content-Range", tt.value)
		new(apierror.Responder).Respond(rec, httptest.NewRequest(http.MethodGet, "/", nil), apierror.New(tt.status, "x", ""))
		if got := rec.Header().Get("Content-Range") != ""; got != tt.want {
			t.Errorf("status %d, Content-Range %q: kept %v, want %v", tt.status, tt.value, got, tt.want)
		}
	}
}

func TestHeadHasNoBody(t *testing.T) {
	// With the recorder, since net/http itself would hide a body.
	rec := httptest.NewRecorder()
	new(apierror.Responder).Respond(rec, httptest.NewRequest(http.MethodHead, "/", nil), petNotFound)
	if rec.Body.Len() != 0 {
		t.Errorf("the answer to HEAD has the body %q", rec.Body)
	}
	if rec.Header().Get("Content-Length") == "" {
		t.Error("the answer to HEAD lacks the Content-Length of GET")
	}

	// On the wire, with a body longer than net/http would measure by itself.
	long := apierror.New(http.StatusBadRequest, "invalid_body", strings.Repeat("x", 5000))
	srv := serve(t, failing(nil, long))
	get, head := do(t, srv, http.MethodGet, "/"), do(t, srv, http.MethodHead, "/")
	if get.ContentLength != int64(len(get.body)) || head.ContentLength != get.ContentLength {
		t.Errorf("Content-Length is %d for GET, %d for HEAD; the body has %d octets", get.ContentLength, head.ContentLength, len(get.body))
	}
}

func TestVaryIsAdded(t *testing.T) {
	for _, tt := range []struct {
		name       string
		before     []string
		wantValues []string
	}{
		{"none", nil, []string{"Accept"}},
		{"another", []string{"Origin"}, []string{"Origin", "Accept"}},
		{"a longer name", []string{"Accept-Encoding"}, []string{"Accept-Encoding", "Accept"}},
		{"there in a list", []string{"Origin , accept"}, []string{"Origin , accept"}},
		{"there in a second line", []string{"Origin", "Accept"}, []string{"Origin", "Accept"}},
		{"everything", []string{"*"}, []string{"*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			for _, v := range tt.before {
				rec.Header().Add("Vary", v)
			}
			new(apierror.Responder).Respond(rec, httptest.NewRequest(http.MethodGet, "/", nil), petNotFound)
			if diff := cmp.Diff(tt.wantValues, rec.Header().Values("Vary")); diff != "" {
				t.Errorf("Vary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeaderValuesAreIndependent(t *testing.T) {
	rec := httptest.NewRecorder()
	new(apierror.Responder).Respond(rec, httptest.NewRequest(http.MethodGet, "/", nil), petNotFound)
	rec.Header().Add("Content-Type", "x")
	rec.Header().Add("Cache-Control", "y")
	if got := rec.Header().Values("Content-Length"); len(got) != 1 || got[0] == "x" {
		t.Errorf("adding to one field changed another: Content-Length is %q", got)
	}
	if got := rec.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("adding to one field changed another: X-Content-Type-Options is %q", got)
	}
}

func TestErrorCopies(t *testing.T) {
	cause := errors.New("no rows")
	derived := invalidBody.Wrap(cause).WithDetails(apierror.Detail{Pointer: "/status", Detail: "is not one of available, pending, sold"})

	if !errors.Is(derived, cause) {
		t.Error("the cause is not in the error's tree")
	}
	if !errors.Is(fmt.Errorf("create: %w", derived), invalidBody) {
		t.Error("a copy is not found by the error it was derived from")
	}
	if errors.Is(derived, petNotFound) || errors.Is(apierror.New(409, "invalid_body", ""), invalidBody) {
		t.Error("errors of different status or code are taken for one another")
	}
	if errors.Unwrap(invalidBody) != nil || len(invalidBody.Details) != 2 || len(derived.Details) != 3 {
		t.Error("deriving an error changed the original")
	}

	base := invalidBody.WithDetails()
	base.Details = slices.Grow(base.Details, 4)
	first, second := base.WithDetails(apierror.Detail{Detail: "first"}), base.WithDetails(apierror.Detail{Detail: "second"})
	if first.Details[2].Detail != "first" || second.Details[2].Detail != "second" {
		t.Error("two errors derived from one share their details")
	}
}

func TestHandleAfterTheResponseHasBegun(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", http2), func(t *testing.T) {
			var logs logbook
			rs := &apierror.Responder{Logger: logs.logger()}
			srv := serve(t, rs.Recover(rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
				_, _ = io.WriteString(w, `[{"id":1}`)
				w.(http.Flusher).Flush()
				return petNotFound
			})), http2)

			res := do(t, srv, http.MethodGet, "/")
			if res.err == nil {
				t.Errorf("a truncated body looks whole to the client: %q", res.body)
			}
			if res.body != `[{"id":1}` {
				t.Errorf("body %q, want only what the handler wrote", res.body)
			}
			want := []map[string]any{{
				"level": "ERROR", "msg": "request failed after its response had begun; response aborted",
				"method": "GET", "route": "", "error": petNotFound.Error(),
			}}
			if diff := cmp.Diff(want, logs.lines(t)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}
