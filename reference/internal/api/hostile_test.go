package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// What a request may cost at most, whatever it holds.
const (
	maxTime   = 100 * time.Millisecond // a slower run is repeated; nothing fails on it
	maxMemory = 8 << 20
)

// A hostile request costs little time and memory, and is answered like any other.
func TestHostileRequestsAreCheap(t *testing.T) {
	// Not parallel: it measures the memory of the process.
	s := start(t, nil)
	type request struct {
		method, target, field, value, body string
	}
	requests := make(map[string]request)
	fill := func(unit string, size int) string { return strings.Repeat(unit, size/len(unit)) }

	for name, unit := range map[string]string{
		"separators": "&", "semicolons": ";", "pairs": "a=b&", "limits": "limit=1&", "empty limits": "limit&", "escapes": "%41",
		"bad escapes": "%zz", "octets that are not UTF-8": "%ff", "NULs": "%00", "plus signs": "+", "brackets": "limit[]=1&", "equals": "=",
	} {
		requests["a query of "+name] = request{target: "/v1/pets?" + fill(unit, 8000)}
		requests["a cursor of "+name] = request{target: "/v1/pets?cursor=" + fill(strings.ReplaceAll(unit, "&", "A"), 8000)}
	}
	for name, unit := range map[string]string{
		"slashes": "/", "escaped slashes": "%2F", "dots": "../", "single dots": "./", "escaped dots": "%2e%2e/", "digits": "9", "NULs": "%00", "segments": "/x",
	} {
		requests["a path of "+name] = request{target: "/v1/pets/" + fill(unit, 8000)}
		requests["a long path of "+name] = request{target: "/v1/pets/" + fill(unit, 60000)}
	}
	for _, field := range []string{
		"Accept", "Authorization", "Content-Type", "Content-Encoding", "If-Match", "If-None-Match", "X-Request-Id", "X-Forwarded-For",
		"Origin", "Forwarded", "Cookie", "Range", "Expect-CT",
	} {
		for name, unit := range map[string]string{
			"commas": ",", "quotes": `"`, "tags": `"x",`, "weak tags": `W/"x",`, "slashes": "a/b,", "parameters": `a/b;c="d\"";`,
			"weights": "a/b;q=0.5,", "stars": "*", "letters": "a", "Bearer": "Bearer ", "octets": "\xff", "addresses": "1.1.1.1,",
			"semicolons": ";", "backslashes": `"\`,
		} {
			requests[field+" of "+name] = request{target: "/v1/pets/1", field: field, value: fill(unit, 60000)}
			requests["POST with "+field+" of "+name] = request{method: "POST", target: "/v1/pets", field: field, value: fill(unit, 60000), body: "{}"}
		}
	}
	const size = 65000
	for name, body := range map[string]string{
		"arrays in arrays":      fill("[", size),
		"objects in objects":    fill(`{"a":`, size),
		"empty arrays":          "[" + fill("[],", size) + "[]]",
		"members":               `{` + members(size/10) + `"name":"x","categoryId":1}`,
		"the same member":       "{" + fill(`"name":"x",`, size) + `"categoryId":1}`,
		"a long name":           `{"name":"` + fill("x", size) + `","categoryId":1}`,
		"escapes":               `{"name":"` + fill(`\u0041`, size) + `","categoryId":1}`,
		"surrogates":            `{"name":"` + fill(`\ud83d\udc15`, size) + `","categoryId":1}`,
		"a long member name":    `{"` + fill("/~", size) + `":1}`,
		"a number of digits":    `{"name":"x","categoryId":` + fill("1", size) + `}`,
		"a number of zeros":     `{"name":"x","categoryId":1.` + fill("0", size) + `}`,
		"a large exponent":      `{"name":"x","categoryId":1e1000001}`,
		"an exponent of digits": `{"name":"x","categoryId":1e` + fill("9", size) + `}`,
		"numbers":               `{"x":[` + fill("1e99,", size) + `1]}`,
		"white space":           fill(" \t\r\n", size),
		"octets":                fill("\xff\x00", size),
		"quotes":                fill(`"`, size),
		"backslashes":           `"` + fill(`\`, size),
		"statuses":              `{"status":[` + fill(`"sold",`, size) + `""]}`,
	} {
		requests["a body of "+name] = request{method: "POST", target: "/v1/pets", field: "Content-Type", value: "application/json", body: body}
	}

	var slowest time.Duration
	var slowestName string
	for name, r := range requests {
		method := r.method
		if method == "" {
			method = "GET"
		}
		best, memory := time.Hour, uint64(0)
		for range 3 { // the machine may be doing other things
			req := httptest.NewRequest(method, "/", strings.NewReader(r.body))
			if err := setTarget(req, r.target); err != nil {
				break // net/http refuses it
			}
			if r.body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			req.Header.Set("Authorization", "Bearer "+s.Key)
			if r.field != "" {
				req.Header[http.CanonicalHeaderKey(r.field)] = []string{r.value}
			}
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			s.handler.ServeHTTP(w, req)
			best = min(best, time.Since(begin))
			runtime.ReadMemStats(&after)
			memory = after.TotalAlloc - before.TotalAlloc
			if w.Code >= 500 || w.Header().Get("X-RateLimit-Limit") == "" {
				t.Errorf("%s: answered with %d %v %s", name, w.Code, w.Header(), w.Body)
			}
			if best < maxTime {
				break
			}
		}
		if best > slowest && best < time.Hour {
			slowest, slowestName = best, name
		}
		if memory > maxMemory {
			t.Errorf("%s takes %d octets of memory, want %d at most", name, memory, maxMemory)
		}
	}
	t.Logf("the slowest of %d is %s with %v", len(requests), slowestName, slowest)
	if got := string(s.Get(t, "/v1/pets").Data); got != "[]\n" {
		t.Errorf("something was stored: %.200s", got)
	}
}

// members are n members of different names.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	return b.String()
}

func setTarget(r *http.Request, target string) error {
	u, err := r.URL.Parse(target)
	if err != nil {
		return err
	}
	r.URL, r.RequestURI = u, target
	return nil
}
