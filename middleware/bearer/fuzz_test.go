package bearer_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/bearer"
)

// The grammar of RFC 6750 section 2.1 and RFC 9110 section 11.4, as a regular
// expression.
var grammar = regexp.MustCompile(`^[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)$`)

// A token is found in one line if and only if the line matches the grammar, and
// is then handed on unchanged.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		"", "Bearer", "Bearer ", "Bearer ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/==", "Bearer a=b", "Bearer \ta", "Bearer: a", "Bearer a%20", "bearer   abc==", "Bearer\tabc", "Bearer a b", "Bearer a, Bearer b",
		`Bearer "a"`, "Bearer token=a", "Basic YTpi", "Bearer é", "Bearer =", "Bearerabc", " Bearer abc ", "Bearer abc\x00",
	} {
		f.Add(seed)
	}
	var found string
	auth, err := bearer.New("pets", func(_ context.Context, token string) (user, error) {
		found = token
		return user{}, nil
	}, bearer.Options{})
	if err != nil {
		f.Fatal(err)
	}
	h := auth.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	f.Fuzz(func(t *testing.T, value string) {
		want := ""
		if m := grammar.FindStringSubmatch(strings.Trim(value, " \t")); m != nil && len(m[1]) <= 16<<10 {
			want = m[1]
		}
		found = ""
		w := serve(h, request(value))
		if found != want {
			t.Errorf("token of %q is %q, want %q", value, found, want)
		}
		if status := map[bool]int{true: 200, false: 401}[want != ""]; w.Code != status {
			t.Errorf("%q is answered %d, want %d", value, w.Code, status)
		}
		if w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), `Bearer realm="pets"`) {
			t.Errorf("%q is refused with the challenge %q", value, w.Header().Get("WWW-Authenticate"))
		}
	})
}
