package apierror

import "testing"

func TestKeptFieldsAreNotStale(t *testing.T) {
	for _, name := range kept {
		if isStale(name) {
			t.Errorf("%s is skipped by onlyKept, but must be removed", name)
		}
	}
}

func TestOnlyKept(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  bool
	}{
		{nil, true},
		{[]string{"Retry-After", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}, true},
		{kept[:], true},
		{[]string{"Etag"}, false},
		{[]string{"Retry-After", "Expires"}, false},
		{append([]string{"Age"}, kept[:]...), false},
	} {
		h := map[string][]string{}
		for _, name := range test.names {
			h[name] = []string{"x"}
		}
		if got := onlyKept(h); got != test.want {
			t.Errorf("onlyKept with %v returned %v, want %v", test.names, got, test.want)
		}
	}
}
