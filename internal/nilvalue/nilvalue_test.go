package nilvalue_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/animalstore/gatehouse/internal/nilvalue"
)

type encoder interface{ Encode() string }

func TestIn(t *testing.T) {
	for name, test := range map[string]struct {
		v    any
		want bool
	}{
		"nil":                      {nil, true},
		"a nil interface":          {encoder(nil), true},
		"a nil pointer":            {(*http.Transport)(nil), true},
		"a nil function":           {http.HandlerFunc(nil), true},
		"a pointer":                {&http.Transport{}, false},
		"a function":               {http.HandlerFunc(http.NotFound), false},
		"a struct":                 {http.Dir(""), false},
		"a nil map, with methods":  {encoder(url.Values(nil)), false},
		"a struct of nil pointers": {struct{ *http.Transport }{}, false},
	} {
		if got := nilvalue.In(test.v); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
