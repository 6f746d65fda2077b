package deprecation_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/deprecation"
)

func TestFromHeader(t *testing.T) {
	const links = `</v1/pets?status=available>; rel="successor-version", <https://docs.example/>; rel=deprecation`
	for _, tt := range []struct {
		name   string
		header http.Header
		want   deprecation.Notice
		ok     bool
		err    string
	}{
		{"nothing", http.Header{}, deprecation.Notice{}, false, ""},
		{"links alone", http.Header{"Link": {links}}, deprecation.Notice{}, false, ""},
		{
			"everything", http.Header{"Deprecation": {deprecationValue}, "Sunset": {sunsetValue}, "Link": {links, `</policy>; rel="item SUNSET"`}},
			deprecation.Notice{Since: since, Sunset: sunset, Documentation: "https://docs.example/", SunsetInfo: "/policy", Successor: successor}, true, "",
		},
		{"deprecation alone", http.Header{"Deprecation": {deprecationValue}}, deprecation.Notice{Since: since}, true, ""},
		{"sunset alone", http.Header{"Sunset": {sunsetValue}}, deprecation.Notice{Sunset: sunset}, true, ""},
		{
			"first link counts, of this resource",
			http.Header{"Deprecation": {deprecationValue}, "Link": {`</other>; rel=sunset; anchor="/other", </a>; rel=sunset, </b>; rel=sunset`}},
			deprecation.Notice{Since: since, SunsetInfo: "/a"}, true, "",
		},
		{
			"value of an early draft", http.Header{"Deprecation": {"true"}, "Sunset": {sunsetValue}},
			deprecation.Notice{Sunset: sunset}, true, `deprecation: Deprecation must be "@" and Unix seconds, got "true"`,
		},
		{
			"malformed sunset", http.Header{"Deprecation": {deprecationValue}, "Sunset": {"2030-12-05"}, "Link": {links}},
			deprecation.Notice{Since: since, Documentation: "https://docs.example/", Successor: successor}, true, `deprecation: Sunset must be an HTTP-date in GMT, got "2030-12-05"`,
		},
		{
			"both repeated", http.Header{"Deprecation": {deprecationValue, deprecationValue}, "Sunset": {sunsetValue, sunsetValue}},
			deprecation.Notice{}, true, "deprecation: Deprecation is repeated: it must be sent once\ndeprecation: Sunset is repeated: it must be sent once",
		},
		{
			"repeated in a line", http.Header{"Deprecation": {deprecationValue + ", " + deprecationValue}},
			deprecation.Notice{}, true, `deprecation: Deprecation must have an integer of 1 to 15 digits after "@", got "@1764892800, @1764892800"`,
		},
		{
			"empty", http.Header{"Sunset": {""}},
			deprecation.Notice{}, true, `deprecation: Sunset must be an HTTP-date in GMT, got ""`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok, err := deprecation.FromHeader(tt.header)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("FromHeader: %v, want %v; notice (-want +got):\n%s", ok, tt.ok, diff)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("FromHeader: got error %v, want %q", err, tt.err)
			}
		})
	}
}

// What is written is what is read.
func TestFromResponse(t *testing.T) {
	d := declare(t, before, deprecation.Options{
		Sunset: sunset, Successor: successor, Documentation: "https://docs.example/a?b=c,d;e#f", SunsetInfo: "//policy.example/",
	})
	resp := serve(d.Enforce(ok), http.MethodGet, "/v1/pets/7").Result()
	want := deprecation.Notice{
		Since: since, Sunset: sunset,
		Documentation: "https://docs.example/a?b=c,d;e#f", SunsetInfo: "//policy.example/", Successor: successor,
	}
	got, ok, err := deprecation.FromResponse(resp)
	if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
		t.Errorf("without a request: %v, %v, notice (-want +got):\n%s", ok, err, diff)
	}

	resp.Request = httptest.NewRequest(http.MethodGet, "https://api.example/v1/pets/7", nil)
	want.SunsetInfo, want.Successor = "https://policy.example/", "https://api.example/v1/pets?status=available"
	got, ok, err = deprecation.FromResponse(resp)
	if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
		t.Errorf("with a request: %v, %v, notice (-want +got):\n%s", ok, err, diff)
	}

	resp.Request.URL.User = url.UserPassword("ann", "secret")
	got, ok, err = deprecation.FromResponse(resp)
	if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
		t.Errorf("with a password in the URL of the request: %v, %v, notice (-want +got):\n%s", ok, err, diff)
	}
	if resp.Request.URL.User.String() != "ann:secret" {
		t.Errorf("the URL of the request was changed to %v", resp.Request.URL)
	}

	resp.Request = &http.Request{URL: &url.URL{}}
	resp.Header = http.Header{"Sunset": {sunsetValue}, "Link": {`<http://[::1>; rel=sunset`}}
	if got, _, _ := deprecation.FromResponse(resp); got.SunsetInfo != "http://[::1" {
		t.Errorf("a target that is no URL became %q", got.SunsetInfo)
	}
}
