package admin_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

// The texts of errors are an interface for operators and their scripts.
func TestTextsOfErrors(t *testing.T) {
	open, guarded := newHandler(t, nil), newHandler(t, func(c *admin.Config) {
		withToken(c)
		c.Now = func() time.Time { return time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC) } // one minute for all
	})
	for range 10 {
		serve(guarded, "GET", "/bans", "192.0.2.1:1", "Authorization: Bearer wrong-token-wrong-token")
	}
	for _, tt := range []struct {
		name, method, target, remote string
		guarded                      bool
		fields                       []string
		status                       int
		code, message                string
	}{
		{name: "unban without a name", method: "DELETE", target: "/bans", status: 400, code: "invalid_parameter",
			message: "Name the owner or the network to unban: owner=NAME, or network=ADDRESS with an IP address or a network as in the list of bans."},
		{name: "a page of another origin", method: "GET", target: "/bans", fields: []string{"Sec-Fetch-Site: cross-site"}, status: 403, code: "cross_site_request",
			message: "The admin listener does not answer requests that a browser sends for a page of another origin."},
		{name: "another host", method: "GET", target: "/bans", fields: []string{"Host: pets.example"}, status: 421, code: "misdirected_request",
			message: "Without a token, the admin listener answers only requests for localhost and loopback addresses."},
		{name: "wrong tokens", method: "GET", target: "/bans", remote: "192.0.2.1:2", guarded: true, fields: []string{"Authorization: Bearer wrong"}, status: 429, code: "rate_limit_exceeded",
			message: "Your network has sent too many requests with a wrong admin token. Wait as long as Retry-After says."},
	} {
		h, remote := open, local
		if tt.guarded {
			h = guarded
		}
		if tt.remote != "" {
			remote = tt.remote
		}
		w := serve(h, tt.method, tt.target, remote, tt.fields...)
		var got struct{ Code, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %d %s: %v", tt.name, w.Code, w.Body, err)
		}
		if w.Code != tt.status || got.Code != tt.code || got.Message != tt.message {
			t.Errorf("%s: answered with %d %s %q, want %d %s %q", tt.name, w.Code, got.Code, got.Message, tt.status, tt.code, tt.message)
		}
	}
}
