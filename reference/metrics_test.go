package main_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// metrics returns the series of /metrics.
func (p *process) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	series := make(map[string]float64)
	for line := range strings.Lines(string(mustAsk(t, 200, "GET", p.admin+"/metrics", "", "").body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if value == "" {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		} else {
			name += "}"
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("a line of /metrics is %q: %v", line, err)
		}
		series[name] = n
	}
	return series
}

// expiry is the metric of a server with TLS.
const expiry = "petstore_certificate_expiry_timestamp_seconds"

// The metrics of a server count what exerciseAlone does. No series names a client.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := exerciseAlone(t).metrics(t)
	for name, want := range map[string]float64{
		`gatehouse_rate_limiting_requests_total{gatehouse_plan="small",gatehouse_result="allowed",gatehouse_window="31622400s"}`: 2,
		`gatehouse_rate_limiting_requests_total{gatehouse_plan="small",gatehouse_result="limited",gatehouse_window="31622400s"}`: 1,
		`gatehouse_rate_limiting_requests_total{gatehouse_plan="small",gatehouse_result="banned",gatehouse_window="31622400s"}`:  3,
		`gatehouse_rate_limiting_near_limit_total{gatehouse_plan="small",gatehouse_window="31622400s"}`:                          1,
		`gatehouse_rate_limiting_strikes_total{gatehouse_plan="small"}`:                                                          2,
		`gatehouse_bans_started_total{gatehouse_plan="small"}`:                                                                   1,
		`gatehouse_bans_active`:         0,
		`gatehouse_bans_unbanned_total`: 1,
		`gatehouse_authentication_requests_total{gatehouse_result="authenticated"}`: 10,
		`gatehouse_authentication_requests_total{gatehouse_result="missing"}`:       1,
		`gatehouse_authentication_requests_total{gatehouse_result="invalid"}`:       1,
		`gatehouse_deprecation_requests_total{gatehouse_operation="getPet"}`:        1,
		`gatehouse_engine_duration_seconds_count{gatehouse_result="banned"}`:        3,
		`gatehouse_panics_total`: 0,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="429",http_route="/v1/pets"}`:         4,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/v1/pets/{petId}"}`: 1,
		`petstore_store_duration_seconds_count{error_type="unavailable",petstore_operation="CreatePet"}`:                                      1,
		`petstore_connections_refused_total{petstore_listener="api"}`:                                                                         0,
		`petstore_connections_open{petstore_listener="admin"}`:                                                                                1,
		`petstore_config_last_reload_success`:                                                                                                 0,
	} {
		if got, ok := m[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds", "gatehouse_engine_subjects", "gatehouse_engine_capacity"} {
		if m[name] <= 0 {
			t.Errorf("%s is %v, want more than 0", name, m[name])
		}
	}
	if got, ok := m[expiry]; ok {
		t.Errorf("%s is %v without TLS, want none", expiry, got)
	}
	id := regexp.MustCompile(`owner="?(?:ann|bob)|127\.0\.0\.1|pet_live_`)
	for name := range m {
		if id.MatchString(name) {
			t.Errorf("a series names a client: %s", name)
		}
	}
}

// An alert does not see an event that creates its counter, so counters begin with zero.
func TestCountersOfAlertsBeginWithZero(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir())
	first := p.metrics(t)
	for _, name := range []string{
		`gatehouse_bans_started_total{gatehouse_plan="anonymous"}`,
		`gatehouse_bans_started_total{gatehouse_plan="free"}`,
		`gatehouse_rate_limiting_requests_total{gatehouse_plan="free",gatehouse_result="undecided",gatehouse_window=""}`,
		`gatehouse_authentication_requests_total{gatehouse_result="invalid"}`,
		`gatehouse_authentication_requests_total{gatehouse_result="refused"}`,
		`gatehouse_deprecation_requests_total{gatehouse_operation="getPet"}`,
		`gatehouse_engine_refusals_total`,
		`petstore_connections_refused_total{petstore_listener="api"}`,
		`petstore_connections_waited_total{petstore_listener="api"}`,
	} {
		if n, ok := first[name]; !ok || n != 0 {
			t.Errorf("before the first request %s is %v, %t; want a series with 0", name, n, ok)
		}
	}
}

// Whatever clients send, the number of series stays the same.
func TestClientsCannotCreateSeries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", "anonymous: [1000000/minute]\n")
	key := roomyKey(t, dir, "ada")
	p := serve(t, dir, "--config=petstore.yaml")
	flood := func(round, n int) {
		for i := range n {
			name := fmt.Sprintf("%d-%d", round, i)
			for target, c := range map[string]call{
				"/v1/" + name:             {host: name + ".example"},
				"/v1/pets/" + name:        {key: key, host: name + ".example"},
				"/v1/pets":                {key: "pet_live_" + name},
				"/v1/pets?status=" + name: {key: key},
				"/v1/pets?":               {method: "M" + name, key: key},
				"/" + name:                {method: "M" + name},
			} {
				_, err := c.sendTo(t.Context(), p.api+target)
				must(t, err)
			}
		}
	}
	flood(0, 1)
	before := p.metrics(t)
	flood(1, 30)
	after := p.metrics(t)
	if len(after) != len(before) {
		for name := range after {
			if _, ok := before[name]; !ok {
				t.Logf("new: %s", name)
			}
		}
		t.Errorf("%d series after 180 requests, want the %d of before", len(after), len(before))
	}
	if len(after) > 1000 {
		t.Errorf("%d series, want at most 1000", len(after))
	}
}
