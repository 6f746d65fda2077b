package limit_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestByIP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		s := around(t, limit.ByIP(ratelimit.PerMinute(2), ratelimit.PerDay(3)))
		first := s.send("192.0.2.1:1")
		if first.Code != 200 || first.Header().Get("X-RateLimit-Limit") != "2" || first.Header().Get("X-RateLimit-Remaining") != "1" {
			t.Errorf("first request: %d %v, want 200 with 1 of 2 remaining", first.Code, first.Header())
		}
		s.want(200, "192.0.2.1:2")
		third := s.send("192.0.2.1:3")
		if third.Code != 429 || third.Header().Get("Retry-After") != "60" {
			t.Errorf("third request: %d, Retry-After %q, want 429 and 60", third.Code, third.Header().Get("Retry-After"))
		}
		s.want(200, "192.0.2.2:1")
		time.Sleep(time.Minute)
		s.want(200, "192.0.2.1:1")
		if last := s.send("192.0.2.1:1"); last.Header().Get("X-RateLimit-Limit") != "3" || last.Header().Get("Retry-After") != "86340" {
			t.Errorf("fourth request of the day: %v, want the limit of the day and the rest of it", last.Header())
		}
	})
}

// A client must not get a ban that the service did not ask for.
func TestQuotasAloneNeverBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := around(t, limit.ByIP(ratelimit.PerMinute(1)))
		s.want(200, "192.0.2.1:1")
		for range 59 {
			s.want(429, "192.0.2.1:1")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		s.want(200, "192.0.2.1:1")
	})
}

func userField(r *http.Request) string { return r.Header.Get("User") }

func TestByUser(t *testing.T) {
	s := around(t, limit.ByUser(userField, perYear(1)))
	s.want(200, "192.0.2.1:1", "User", "ann")
	s.want(429, "192.0.2.2:1", "User", "ann")
	s.want(200, "192.0.2.1:1", "User", "bob")
	// Without a user, the network counts.
	s.want(200, "192.0.2.1:1")
	s.want(429, "192.0.2.1:1")
	s.want(200, "192.0.2.2:1")
	// The name of a user is never that of a network.
	s.want(200, "192.0.2.3:1", "User", "network:192.0.2.1/32")
}

func TestByPlan(t *testing.T) {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), perYear(1))
	pro := ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), perYear(2))
	plans := map[string]*ratelimit.Plan{"": free, "ann": free, "bob": pro, "test": ratelimit.UnlimitedPlan("test"), "cut": ratelimit.SuspendedPlan("cut")}
	s := around(t, limit.ByPlan(func(r *http.Request) (string, *ratelimit.Plan, error) {
		return userField(r), plans[userField(r)], nil
	}))
	for user, want := range map[string][]int{
		"": {200, 429}, "ann": {200, 429}, "bob": {200, 200, 429}, "test": {200, 200, 200}, "cut": {403}, "nobody": {500},
	} {
		for _, status := range want {
			s.want(status, "192.0.2.1:1", "User", user)
		}
	}
}

func TestByPlanBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
		s := around(t, limit.ByPlan(func(*http.Request) (string, *ratelimit.Plan, error) { return "", free, nil }))
		s.want(200, "192.0.2.1:1")
		s.want(429, "192.0.2.1:1")
		time.Sleep(3 * time.Second) // the grace
		for range 11 {
			s.want(429, "192.0.2.1:1")
		}
		banned := s.send("192.0.2.1:1")
		if !strings.Contains(banned.Body.String(), `"client_banned"`) || strings.Contains(banned.Body.String(), "API key") {
			t.Errorf("after 11 strikes: %s, want a ban that speaks of no API key", banned.Body)
		}
	})
}

// What the package comment says about the results of one call and of two.
func TestOneCallCountsTogether(t *testing.T) {
	byIP := limit.ByIP(perYear(2))
	a, b, other := around(t, byIP), around(t, byIP), around(t, limit.ByIP(perYear(2)))
	a.want(200, "192.0.2.1:1")
	b.want(200, "192.0.2.1:1")
	a.want(429, "192.0.2.1:1")
	other.want(200, "192.0.2.1:1")
	twice := limit.ByIP(perYear(2))
	nested := around(t, func(h http.Handler) http.Handler { return twice(twice(h)) })
	nested.want(200, "192.0.2.1:1")
	nested.want(429, "192.0.2.1:1")
}

// Identify names the subjects of ByPlan, so that usage and bans can be found by them: the user,
// or the network that the proxies name. A subscriber has more IPv6 addresses than an engine has
// places.
func TestIdentify(t *testing.T) {
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, perYear(2))
	direct, behind := limit.Addresses{}, limit.Behind("10.0.0.0/8", "192.0.2.7")
	cdn := limit.Addresses{Source: must(clientip.FromHeader("CF-Connecting-IP", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))}
	for _, c := range []struct {
		clients          limit.Addresses
		addr, user       string
		forwarded, named string // X-Forwarded-For and CF-Connecting-IP
		want             string
	}{
		{direct, "198.51.100.1:1", "ann", "", "", "user:ann"},
		{direct, "198.51.100.1:1", "", "192.0.2.1", "", "network:198.51.100.1/32"},
		{direct, "[2001:db8::ffff:2]:1", "", "", "", "network:2001:db8::/64"},
		{direct, "192.0.2.3:1", "network:192.0.2.1/32", "", "", "user:network:192.0.2.1/32"},
		{behind, "10.0.0.1:1", "ann", "198.51.100.1", "", "user:ann"},
		{behind, "10.0.0.1:1", "", "198.51.100.1", "", "network:198.51.100.1/32"},
		{behind, "192.0.2.7:1", "", "203.0.113.9, 198.51.100.1", "", "network:198.51.100.1/32"}, // the first is invented
		{behind, "192.0.2.8:1", "", "198.51.100.1", "", "network:192.0.2.8/32"},                 // not a proxy
		{cdn, "10.0.0.1:1", "", "192.0.2.1", "198.51.100.1", "network:198.51.100.1/32"},
		{direct.WithIPv6Prefix(56), "[2001:db8:0:ab01::1]:1", "", "", "", "network:2001:db8:0:ab00::/56"},
		{behind.WithIPv6Prefix(48), "10.0.0.1:1", "", "2001:db8:1:ab01::1", "", "network:2001:db8:1::/48"},
		{behind, "10.0.0.1:1", "", "2001:db8:1:ab01::1", "", "network:2001:db8:1:ab01::/64"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.addr
		for name, value := range map[string]string{"User": c.user, "X-Forwarded-For": c.forwarded, "CF-Connecting-IP": c.named} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		got, err := c.clients.Identify(func(r *http.Request) (string, *ratelimit.Plan, error) { return userField(r), plan, nil })(r)
		if err != nil || got.Subject != c.want || got.Plan != plan || got.Kind != 0 || got.Also != nil {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// As the page says of one limit inside another.
func TestLimitInsideAnother(t *testing.T) {
	outer, inner := limit.ByIP(perYear(10)), limit.ByUser(userField, perYear(2))
	s := around(t, func(h http.Handler) http.Handler { return outer(inner(h)) })
	for left := 1; left >= 0; left-- {
		w := s.send("192.0.2.1:1", "User", "ann")
		ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 2, Remaining: int64(left)})
	}
	s.want(429, "192.0.2.1:1", "User", "ann")
	for range 7 { // the three requests of ann are charged to the network
		s.want(200, "192.0.2.1:1", "User", rand.Text())
	}
	w := s.send("192.0.2.1:1", "User", "bob")
	if w.Code != 429 || w.Header().Get("X-RateLimit-Limit") != "10" {
		t.Errorf("request 11 of the network: %d, limit %s, want 429 by the outer limit", w.Code, w.Header().Get("X-RateLimit-Limit"))
	}
}

func TestWrongArgumentsPanic(t *testing.T) {
	none := []ratelimit.Quota(nil)
	for _, c := range []struct {
		name string
		call func()
		want string
	}{
		{"no quota", func() { limit.ByIP(none...) }, "limit.ByIP: "},
		{"limit 0", func() { limit.ByIP(ratelimit.PerMinute(0)) }, "Quota.Limit must be from 1 to 9007199254740991, got 0"},
		{"two minutes", func() { limit.ByUser(userField, ratelimit.PerMinute(1), ratelimit.PerMinute(2)) }, "limit.ByUser: "},
		{"no user", func() { limit.ByUser(nil, ratelimit.PerMinute(1)) }, "limit.ByUser: the function that returns the user must not be nil"},
		{"no plan", func() { limit.ByPlan(nil) }, "limit.ByPlan: the function"},
		{"no plan for an engine", func() { limit.Addresses{}.Identify(nil) }, "limit.Identify: the function"},
		{"no proxies", func() { limit.Behind() }, "limit.Behind: clientip: trusted proxies: "},
		{"not a network", func() { limit.Behind("10.0.0.0/8", "proxy") }, `"proxy" must be a network such as 10.0.0.0/8`},
		{"a long IPv6 prefix", func() { limit.Behind("10.0.0.0/8").WithIPv6Prefix(65) }, "WithIPv6Prefix: bits must be from 48 to 64, got 65"},
		{"every address", func() { limit.Behind("0.0.0.0/0") }, "0.0.0.0/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				t.Helper()
				text := ""
				switch p := recover().(type) {
				case error:
					text = p.Error()
				case string:
					text = p
				}
				if !strings.HasPrefix(text, "limit.") || !strings.Contains(text, c.want) {
					t.Errorf("panic %q, want one that begins with the function and has %q", text, c.want)
				}
			}()
			c.call()
		})
	}
	limit.Addresses{Source: clientip.FromRemoteAddr()}.ByIP(ratelimit.PerSecond(1), ratelimit.PerHour(2))
}

// All limits of Addresses find them at the same place.
func TestBehind(t *testing.T) {
	behind, plan := limit.Behind("10.0.0.0/8"), ratelimit.MustPlan("p", ratelimit.Penalty{}, perYear(1))
	for _, byClient := range []func(http.Handler) http.Handler{
		behind.ByIP(perYear(1)), behind.ByUser(userField, perYear(1)),
		behind.ByPlan(func(*http.Request) (string, *ratelimit.Plan, error) { return "", plan, nil }),
	} {
		s := around(t, byClient)
		s.want(200, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.1")
		s.want(429, "10.0.0.2:1", "X-Forwarded-For", "198.51.100.1")
		s.want(200, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.2")
	}
}

func TestWarningAboutAProxy(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  limit.Addresses
		addr   string
		header []string
		warns  bool
	}{
		{"a proxy in a private network", limit.Addresses{}, "10.0.0.1:1", []string{"X-Forwarded-For", "198.51.100.1"}, true},
		{"a proxy on this host", limit.Addresses{}, "[::1]:1", []string{"Forwarded", "for=198.51.100.1"}, true},
		{"a Unix socket", limit.Addresses{}, "@", nil, true},
		{"a client in a private network", limit.Addresses{}, "10.0.0.1:1", nil, false},
		{"a header of an unknown client", limit.Addresses{}, "198.51.100.1:1", []string{"X-Forwarded-For", "192.0.2.1"}, false},
		{"a proxy that is known", limit.Behind("10.0.0.1"), "10.0.0.1:1", []string{"X-Forwarded-For", "198.51.100.1"}, false},
		{"another proxy than the known", limit.Behind("10.0.0.1"), "10.0.0.2:1", []string{"X-Forwarded-For", "198.51.100.1"}, true},
		{"a client in the network of the proxies", limit.Behind("10.0.0.0/8"), "10.0.0.1:1", []string{"X-Forwarded-For", "10.0.0.9"}, false},
		{"a known proxy that sends no header", limit.Behind("10.0.0.0/8"), "10.0.0.9:1", nil, true},
		{"a known proxy that sends no address", limit.Behind("10.0.0.0/8"), "10.0.0.9:1", []string{"X-Forwarded-For", "unknown"}, true},
		{"a Unix socket and no known proxy", limit.Behind("10.0.0.0/8"), "@", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := logged(func() {
				s := around(t, c.limit.ByIP(perYear(10)))
				s.want(200, c.addr, c.header...)
				s.want(200, c.addr, c.header...)
			})
			want := 0
			if c.warns {
				want = 1
			}
			if got := strings.Count(log, "level=WARN msg=\"limit: "); got != want {
				t.Errorf("%d warnings after two requests, want %d:\n%s", got, want, log)
			}
		})
	}
}

// A proxy with a public address, such as that of a CDN, is known by nearly all of the first
// requests. Later ones are not looked at.
func TestWarningAboutAPublicProxy(t *testing.T) {
	for _, c := range []struct {
		name     string
		limit    limit.Addresses
		requests [3]int // direct ones, forwarded ones, and direct ones again
		want     int
	}{
		{"all of the first", limit.Addresses{}, [3]int{0, 300, 0}, 1},
		{"all until now", limit.Addresses{}, [3]int{0, 99, 0}, 0},
		{"nearly all", limit.Addresses{}, [3]int{10, 90, 0}, 1},
		{"fewer", limit.Addresses{}, [3]int{11, 300, 0}, 0},
		{"the last one not: it is no proxy", limit.Addresses{}, [3]int{0, 99, 1}, 0},
		{"none", limit.Addresses{}, [3]int{300, 0, 0}, 0},
		{"later", limit.Addresses{}, [3]int{100, 300, 0}, 0},
		{"a known one", limit.Behind("203.0.113.0/24"), [3]int{0, 300, 0}, 0},
		{"another than the known", limit.Behind("192.0.2.0/24"), [3]int{0, 300, 0}, 1},
	} {
		log := logged(func() {
			s := around(t, c.limit.ByIP(perYear(10_000)))
			for i, n := range c.requests {
				for k := range n {
					addr, header := fmt.Sprintf("203.0.113.%d:1", k%4), []string(nil)
					if i == 1 {
						header = [][]string{{"X-Forwarded-For", "198.51.100.1"}, {"Forwarded", "for=198.51.100.1"}}[k%2*(c.want%2)]
					}
					s.want(200, addr, header...)
				}
			}
		})
		if n := strings.Count(log, "see limit.Behind"); n != c.want {
			t.Errorf("%s: %d warnings, want %d:\n%s", c.name, n, c.want, log)
		}
	}

	// Clients of a known proxy have public addresses too, and are not among the first requests.
	log := logged(func() {
		s := around(t, limit.Behind("10.0.0.0/8").ByIP(perYear(10_000)))
		for _, addr := range []string{"10.0.0.1:1", "203.0.113.1:1"} {
			for range 100 {
				s.want(200, addr, "X-Forwarded-For", "198.51.100.1")
			}
		}
	})
	if n := strings.Count(log, "see limit.Behind"); n != 1 || !strings.Contains(log, "203.0.113.1") {
		t.Errorf("%d warnings, want one about 203.0.113.1:\n%s", n, log)
	}
}

// Whatever a client sends, it is answered with 200 or 429, and the same bytes count as the
// same client.
func FuzzRequests(f *testing.F) {
	f.Add("192.0.2.1:1", "key", "198.51.100.1")
	f.Add("10.0.0.1:1", "", "")
	f.Add("[2001:db8::1%eth0]:80", "a\nnetwork:192.0.2.1/32", "unknown, 10.0.0.1")
	f.Add("@", "\n", ",")
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	f.Fuzz(func(t *testing.T, addr, value, forwarded string) {
		for name, clients := range map[string]limit.Addresses{"direct": {}, "behind": limit.Behind("10.0.0.0/8")} {
			byUser := around(t, clients.ByUser(userField, perYear(1)))
			header := []string{"User", value, "X-Forwarded-For", forwarded}
			if first, second := byUser.send(addr, header...).Code, byUser.send(addr, header...).Code; first != 200 || second != 429 {
				t.Errorf("%s: %d and %d, want 200 and 429", name, first, second)
			}
		}
	})
}

// A sender sends requests from one address.
type sender struct {
	t       *testing.T
	handler http.Handler
}

// around returns a sender to a handler that answers 200 behind limit.
func around(t *testing.T, limit func(http.Handler) http.Handler) sender {
	return sender{t, limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
}

// send sends a request from addr with header lines given as name, value, name, value, and
// returns the response.
func (s sender) send(addr string, header ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// want sends a request and fails the test if its status is not the given one.
func (s sender) want(status int, addr string, header ...string) {
	s.t.Helper()
	if got := s.send(addr, header...).Code; got != status {
		s.t.Errorf("request from %s with %q: %d, want %d", addr, header, got, status)
	}
}

// perYear returns a quota whose window does not end during a test.
func perYear(n int64) ratelimit.Quota {
	return ratelimit.Quota{Limit: n, Window: fixedwindow.MaxLength}
}
