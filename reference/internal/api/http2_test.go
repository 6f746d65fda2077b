package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// Over TLS and HTTP/2 the responses are the same, but for what only TLS has.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	secure := httptest.NewUnstartedServer(s.handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	client := secure.Client()

	do := func(method, target, key string) (*contract.Response, error) {
		r, err := http.NewRequest(method, secure.URL+target, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		got := &contract.Response{Response: resp, Method: method, Target: target, Data: data}
		if resp.ProtoMajor != 2 {
			return got, fmt.Errorf("the response is of %s", resp.Proto)
		}
		if want := "max-age=31536000; includeSubDomains"; resp.Header.Get("Strict-Transport-Security") != want {
			return got, fmt.Errorf("Strict-Transport-Security is %q, want %q", resp.Header.Get("Strict-Transport-Security"), want)
		}
		return got, s.Contract.Check(got, s.clock.Now())
	}
	for target, status := range map[string]int{"/v1/pets": 200, "/v1/pets/99": 404, "/v1/usage": 200, "/nothing": 404} {
		for _, method := range []string{"GET", "HEAD"} {
			if resp, err := do(method, target, s.Key); err != nil || resp.StatusCode != status {
				t.Errorf("%s %s: %v, want status %d as promised", method, target, err, status)
			}
		}
	}

	t.Run("a burst of streams", func(t *testing.T) {
		key := s.key(t, "small", "enterprise", "30/minute")
		var mu sync.Mutex
		got := make(map[int]int)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				resp, err := do("GET", "/v1/pets", key)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got[resp.StatusCode]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if d := cmp.Diff(map[int]int{200: 30, 429: 70}, got); d != "" {
			t.Errorf("answers to 100 requests at once against 30 a minute (-want +got):\n%s", d)
		}
	})
}

// The header of HSTS means nothing over plain HTTP, and must not be sent there (RFC
// 6797 section 7.2).
func TestNoHSTSOverPlainHTTP(t *testing.T) {
	t.Parallel()
	if got := start(t, nil).Get(t, "/v1/pets").Header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("Strict-Transport-Security is %q over plain HTTP, want none", got)
	}
}

// What HTTP/2 sends in another way is read alike: repeated fields, encoded paths,
// codings, and bodies that are too large, after which the connection lives on.
func TestHTTP2IsReadAlike(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	secure := httptest.NewUnstartedServer(s.handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	key := "Bearer " + s.Key
	for _, test := range []struct {
		method, target, body string
		header               http.Header
		status               int
	}{
		{"GET", "/v1/pets", "", http.Header{"Authorization": {key, key}}, 400},
		{"GET", "/v1/%75sage", "", http.Header{"Authorization": {key}}, 200},
		{"HEAD", "/%761/usage", "", http.Header{"Authorization": {key}}, 200},
		{"GET", "/openap%69.json", "", http.Header{"Accept-Encoding": {"br", "gzip;q=0.5"}}, 200},
		{"GET", "/docs", "", http.Header{"Accept-Encoding": {"gzip"}}, 200},
		{"POST", "/v1/pets", strings.Repeat(" ", 70000), http.Header{"Authorization": {key}, "Content-Type": {"application/json"}}, 413},
		{"POST", "/v1/pets", `{}`, http.Header{"Authorization": {key}, "Content-Type": {"application/json", "application/json"}}, 415},
		{"GET", "/v1/pets", "", http.Header{"Authorization": {key}, "If-None-Match": {`"x"`, "*"}}, 200},
		{"GET", "/v1/pets", "", http.Header{"Authorization": {key}}, 200},
	} {
		r, err := http.NewRequest(test.method, secure.URL+test.target, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = test.header
		resp, err := secure.Client().Do(r)
		if err != nil {
			t.Errorf("%s %s: %v", test.method, test.target, err)
			continue
		}
		resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != test.status || resp.Header.Get("Connection") != "" {
			t.Errorf("%s %s with %.60v: %s %d, Connection %q, want HTTP/2 with %d and no Connection",
				test.method, test.target, test.header, resp.Proto, resp.StatusCode, resp.Header.Get("Connection"), test.status)
		}
	}
}
