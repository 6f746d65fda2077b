package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// handlerTransport calls a handler without a network, in the time of the test.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, err := newHandler()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := call(&out, handlerTransport{api}, "http://api.example.com"); err != nil {
			t.Fatal(err)
		}
		second := strings.Repeat("200 OK\n", 3)
		want := second + "waiting for the next second\n" + second + "waiting for the next second\n200 OK\n" +
			"the limit of the day is reached; come back at 00:00 UTC\n"
		if out.String() != want {
			t.Errorf("the client prints\n%s\nwant\n%s", &out, want)
		}
	})
}
