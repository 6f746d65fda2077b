package admin_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
)

func ban(t testing.TB, engine *memory.Limiter, subjects ...string) {
	t.Helper()
	for i, subject := range subjects {
		if err := engine.Ban(t.Context(), subject, time.Duration(i+1)*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientListsAndLifts(t *testing.T) {
	s, engine := start(t, withToken)
	c := client(s, token)

	bans, err := c.Bans(t.Context())
	if err != nil || len(bans) != 0 {
		t.Fatalf("Bans without any = %v, %v", bans, err)
	}
	owner := `50% of / "Ada & Söhne"?`
	ban(t, engine, apikey.OwnerSubject(owner), "network:192.0.2.1/32", "network:2001:db8:0:1::/64")
	bans, err = c.Bans(t.Context())
	if err != nil {
		t.Fatalf("Bans = %v", err)
	}
	for i, b := range bans {
		if left := time.Until(b.Ends); left <= 0 || left > 3*time.Hour+time.Second {
			t.Errorf("ban %d ends in %v, want up to three hours", i, left)
		}
		bans[i].Ends = time.Time{}
	}
	want := []admin.Ban{{Network: "2001:db8:0:1::/64"}, {Network: "192.0.2.1/32"}, {Owner: owner}}
	if diff := cmp.Diff(want, bans); diff != "" {
		t.Errorf("Bans, those that end last first (-want +got):\n%s", diff)
	}

	type unban struct {
		was bool
		err error
	}
	do := func(was bool, err error) unban { return unban{was, err} }
	for i, got := range []unban{
		do(c.Unban(t.Context(), owner, "")),
		do(c.Unban(t.Context(), "", "::ffff:192.0.2.1")),
		do(c.Unban(t.Context(), "", "2001:db8:0:1::/64")),
	} {
		if !got.was || got.err != nil {
			t.Errorf("unban %d = %v, %v, want true", i, got.was, got.err)
		}
	}
	if was, err := c.Unban(t.Context(), owner, ""); was || err != nil {
		t.Errorf("unbanning twice = %v, %v, want false", was, err)
	}
	if bans, err := c.Bans(t.Context()); err != nil || len(bans) != 0 {
		t.Errorf("Bans when all have ended = %v, %v", bans, err)
	}
}

func TestLiftRefusesWhatIsUnclear(t *testing.T) {
	s, engine := start(t, nil)
	ban(t, engine, apikey.OwnerSubject("ada"), "network:192.0.2.1/32")
	for _, query := range []string{
		"", "owner=", "owner=ada&owner=bob", "owner=ada&network=192.0.2.1", "subject=owner:ada", "owner=%zz",
		"network=", "network=ada", "network=192.0.2.0/24", "network=2001:db8::/48",
	} {
		status, body := request(t, "DELETE", s.URL+"/bans?"+query, "", "")
		if status != 400 || !strings.Contains(body, `"code":"invalid_parameter"`) {
			t.Errorf("DELETE /bans?%s = %d %s, want 400 invalid_parameter", query, status, body)
		}
	}
	if bans, err := client(s, "").Bans(t.Context()); err != nil || len(bans) != 2 {
		t.Errorf("Bans afterwards = %v, %v, want both", bans, err)
	}
}

func TestClientErrors(t *testing.T) {
	guarded, _ := start(t, withToken)
	if _, err := client(guarded, "").Bans(t.Context()); !errors.Is(err, admin.ErrToken) {
		t.Errorf("Bans without a token = %v, want ErrToken", err)
	}
	if _, err := client(guarded, "another-token-of-some-length").Unban(t.Context(), "ada", ""); !errors.Is(err, admin.ErrToken) {
		t.Errorf("UnbanOwner with another token = %v, want ErrToken", err)
	}

	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "check that it is the admin listener"},
		{"another API", http.NotFound, "answered 404 Not Found; check that it is the admin listener"},
		{"another API with the same errors", func(w http.ResponseWriter, r *http.Request) {
			new(apierror.Responder).Mux(http.NewServeMux()).ServeHTTP(w, r)
		}, "answered 404 Not Found; check that it is the admin listener"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "answered 302 Found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			if _, err := client(s, token).Bans(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Bans = %v, want an error that says %q", err, tt.want)
			}
		})
	}

	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, err := client(closed, token).Bans(t.Context())
	if !errors.Is(err, admin.ErrNoAnswer) || strings.Contains(err.Error(), token) {
		t.Errorf("Bans of no server = %v, want ErrNoAnswer", err)
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		t.Errorf("Bans of no server = %v, which names the address twice", err)
	}
}
