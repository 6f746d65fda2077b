package main

import (
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

func TestTelemetry(t *testing.T) {
	h := testcheck.Must(newHandler())
	get := func(path, host string) string {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	for i, host := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		get("/hello", host+".example:"+strconv.Itoa(7001+i))
	}
	metrics := get("/metrics", "m.example")
	for _, want := range []string{
		// A minute may end in the middle, and with it a second quota begins.
		`(?m)^gatehouse_rate_limiting_requests_total\{gatehouse_plan="guests",gatehouse_result="allowed",gatehouse_window="minute".*\} (5|10)$`,
		`(?m)^gatehouse_rate_limiting_requests_total\{gatehouse_plan="guests",gatehouse_result="limited",gatehouse_window="minute".*\} (7|2)$`,
		`(?m)^gatehouse_engine_subjects\{.*\} 1$`,
		`(?m)^gatehouse_engine_duration_seconds_bucket\{gatehouse_result="limited",`,
		`(?m)^http_server_request_duration_seconds_count\{.*http_response_status_code="429",http_route="/hello"`,
	} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("no metric matches %s", want)
		}
	}
	if strings.Contains(metrics, "a.example") {
		t.Error("a label has the Host of a request")
	}
	if strings.Contains(metrics, `"7001"`) {
		t.Error("a label has the port in the Host of a request")
	}
	if t.Failed() {
		t.Log(metrics)
	}
}
