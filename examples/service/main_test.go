package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// A client of the running service.
type client struct {
	t            *testing.T
	url, metrics string
	key          string
}

// start runs the service until the test ends or stop is called. Its plan has windows that do not
// end during a test.
func start(t *testing.T, redisURL string) (c *client, stop func() error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "texts.db")
	s := testcheck.Must(open(t.Context(), file))
	_, err := s.db.Exec("UPDATE plans SET requests = '1000/8784h', tokens = '100/8784h', company = '70/8784h'")
	testcheck.NoError(t, err)
	testcheck.NoError(t, s.db.Close())
	api, err := net.Listen("tcp", "127.0.0.1:0")
	testcheck.NoError(t, err)
	metrics, err := net.Listen("tcp", "127.0.0.1:0")
	testcheck.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, api, metrics, redisURL, file, w)
		w.CloseWithError(err)
		ended <- err
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	testcheck.NoError(t, err)
	c = &client{t: t, url: "http://" + api.Addr().String(), metrics: "http://" + metrics.Addr().String()}
	c.key = strings.TrimSpace(strings.TrimPrefix(line, "KEY="))
	return c, func() error { cancel(); return <-ended }
}

// post returns the status, the header and the body of a response.
func (c *client) post(path, body string) (int, http.Header, string) {
	c.t.Helper()
	r := testcheck.Must(http.NewRequestWithContext(c.t.Context(), "POST", c.url+path, strings.NewReader(body)))
	r.Header.Set("Authorization", "Bearer "+c.key)
	resp := testcheck.Must(http.DefaultClient.Do(r))
	defer resp.Body.Close()
	text := testcheck.Must(io.ReadAll(resp.Body))
	return resp.StatusCode, resp.Header, string(text)
}

// text asks for a text, and returns the status and how many units of the limit that is shown are left.
func (c *client) text(about string, maxTokens int) (status int, left string) {
	c.t.Helper()
	status, header, _ := c.post("/v1/texts", fmt.Sprintf(`{"about": %q, "max_tokens": %d}`, about, maxTokens))
	return status, header.Get("X-RateLimit-Remaining")
}

// A text is charged what it can cost, then what it did; requests and the company are counted beside.
// There is no Redis, which would be too late at times, and decide twice then.
func TestService(t *testing.T) {
	c, stop := start(t, "redis://127.0.0.1:1")
	if status, _, body := c.post("/v1/texts", `{"about": "cats", "max_tokens": 50}`); status != 200 || body != "I\nknow\nnothing\nof\ncats\n" {
		t.Errorf("a text is %d, %q", status, body)
	}
	if status, left := c.text("dogs", 50); status != 200 || left != "15" {
		t.Errorf("the second text: %d with %s left, want the company's 70 less the 5 tokens of the first and 50 of its own", status, left)
	}
	if status, _, body := c.post("/v1/texts", `{"about": "cats", "max_tokens": 61}`); status != 429 || !strings.Contains(body, "company") {
		t.Errorf("a text for more than the company has left: %d, %s, want 429 that names the company", status, body)
	}
	for _, body := range []string{`{`, `{"about": "cats", "max_tokens": 501}`, `{"about": "cats"}`} {
		status, header, text := c.post("/v1/texts", body)
		if status != 400 || header.Get("X-RateLimit-Limit") != "" || !strings.Contains(text, `{"error":{"message":"The body must be JSON`) {
			t.Errorf("the body %s is answered with %d, %s, want 400 in the form of the service", body, status, text)
		}
	}

	// A new key, after which the old one works too.
	old := c.key
	status, _, fresh := c.post("/v1/key", "")
	for _, key := range []string{strings.TrimSpace(fresh), old} {
		if c.key = key; status != 200 || key == "" {
			t.Fatalf("POST /v1/key: %d, %q", status, fresh)
		}
		if status, _ := c.text("cats", 1); status != 200 {
			t.Errorf("a text with one of the two keys: %d", status)
		}
	}
	c.key = "text_wrong"
	if status, _ := c.text("cats", 1); status != 401 {
		t.Errorf("a text with a wrong key: %d, want 401", status)
	}

	resp := testcheck.Must(http.Get(c.metrics))
	defer resp.Body.Close()
	metrics := testcheck.Must(io.ReadAll(resp.Body))
	if want := `(?m)^gatehouse_rate_limiting_requests_total\{gatehouse_plan="team",gatehouse_result="allowed",.*\} 4$`; !regexp.MustCompile(want).Match(metrics) {
		t.Errorf("no metric matches %s:\n%s", want, metrics)
	}
	if err := stop(); err == nil || !strings.Contains(err.Error(), "not merged") {
		t.Errorf("run = %v, want an error that says what Redis did not get", err)
	}
}

// The first start shows a key, and the next ones show nothing.
func TestFirstKey(t *testing.T) {
	s := testcheck.Must(open(t.Context(), filepath.Join(t.TempDir(), "texts.db")))
	defer s.db.Close()
	for _, want := range []string{"KEY=text_", ""} {
		var out strings.Builder
		testcheck.NoError(t, s.firstKey(t.Context(), &out))
		if got := out.String(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A change of a plan is read, and a mistake in it leaves the last plans in force.
func TestPlansAreReadAgain(t *testing.T) {
	s := testcheck.Must(open(t.Context(), filepath.Join(t.TempDir(), "texts.db")))
	defer s.db.Close()
	for _, tt := range []struct{ tokens, want string }{{"5/minute", "5/minute"}, {"many", "5/minute"}, {"7/minute", "7/minute"}} {
		_, err := s.db.Exec("UPDATE plans SET tokens = ?", tt.tokens)
		testcheck.NoError(t, err)
		err = s.readPlans(t.Context())
		if got := (*s.plans.Load())["team"].tokens.Quotas()[0].String(); got != tt.want || (err == nil) != (tt.tokens == tt.want) {
			t.Errorf("after a change to %s the quota is %s (%v), want %s", tt.tokens, got, err, tt.want)
		}
	}
}

func TestServiceWithRedis(t *testing.T) {
	redis := miniredis.RunT(t)
	c, stop := start(t, "redis://"+redis.Addr())
	for range 3 {
		if status, _ := c.text("cats", 10); status != 200 {
			t.Errorf("a text: %d, want 200", status)
		}
	}
	_ = stop()
	if keys := redis.Keys(); !slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, "company:acme") }) {
		t.Errorf("Redis has the keys %q, want one of the company", keys)
	}
}

func TestRedisMustBeAURL(t *testing.T) {
	if err := run(t.Context(), nil, nil, "127.0.0.1:6379", "", io.Discard); err == nil || !strings.Contains(err.Error(), "-redis must be a URL such as redis://127.0.0.1:6379") {
		t.Errorf("run with a host = %v, want an error that shows a URL", err)
	}
}
