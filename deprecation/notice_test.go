package deprecation_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/deprecation"
)

// read returns the notice of a response with a header, without its request.
func read(h http.Header) (deprecation.Notice, bool, error) {
	return deprecation.FromResponse(&http.Response{Header: h})
}

func TestNoticesAreRead(t *testing.T) {
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
			http.Header{"Deprecation": {deprecationValue}, "Link": {`</other>; rel=sunset; anchor="/other", </a>; rel="sunset deprecation successor-version", </b>; rel="successor-version deprecation sunset"`}},
			deprecation.Notice{Since: since, Documentation: "/a", SunsetInfo: "/a", Successor: "/a"}, true, "",
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
			deprecation.Notice{}, true, `deprecation: Deprecation must be "@" and Unix seconds, got "@1764892800, @1764892800"`,
		},
		{"empty", http.Header{"Sunset": {""}}, deprecation.Notice{}, true, `deprecation: Sunset must be an HTTP-date in GMT, got ""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok, err := read(tt.header)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("%v, want %v; notice (-want +got):\n%s", ok, tt.ok, diff)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestDates(t *testing.T) {
	// A year of two digits is less than 50 years ahead.
	ahead := time.Now().UTC().Truncate(24*time.Hour).AddDate(50, 0, 0)
	near, far := ahead.AddDate(0, 0, -5), ahead.AddDate(0, 0, 5)
	for _, tt := range []struct {
		deprecation, sunset string
		want                deprecation.Notice
	}{
		{" @1764892800 ", " Thu, 05 Dec 2030 00:00:00 GMT\t", deprecation.Notice{Since: since, Sunset: sunset}},
		{`@1764892800;a;b="x"`, "Thursday, 05-Dec-30 00:00:00 GMT", deprecation.Notice{Since: since, Sunset: sunset}},
		{"@-999999999999999", "Thu Dec  5 00:00:00 2030", deprecation.Notice{Since: time.Unix(-999999999999999, 0).UTC(), Sunset: sunset}},
		{"@0", "Friday, 05-Dec-70 00:00:00 GMT", deprecation.Notice{Since: time.Unix(0, 0).UTC(), Sunset: time.Date(2070, time.December, 5, 0, 0, 0, 0, time.UTC)}},
		{"@0", "Sunday, 06-Nov-94 08:49:37 GMT", deprecation.Notice{Since: time.Unix(0, 0).UTC(), Sunset: time.Date(1994, time.November, 6, 8, 49, 37, 0, time.UTC)}},
		{"@0", "Thu, 01 Jan 1970 00:00:01 GMT", deprecation.Notice{Since: time.Unix(0, 0).UTC(), Sunset: time.Unix(1, 0).UTC()}},
		{"@0", near.Format("Monday, 02-Jan-06 15:04:05 GMT"), deprecation.Notice{Since: time.Unix(0, 0).UTC(), Sunset: near}},
		{"@0", far.Format("Monday, 02-Jan-06 15:04:05 GMT"), deprecation.Notice{Since: time.Unix(0, 0).UTC(), Sunset: far.AddDate(-100, 0, 0)}},
		{"@0", "Sat, 05 Dec 2030 00:00:00 GMT", deprecation.Notice{Since: time.Unix(0, 0).UTC(), Sunset: sunset}}, // was a Thursday
	} {
		got, _, err := read(http.Header{"Deprecation": {tt.deprecation}, "Sunset": {tt.sunset}})
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%q, %q: error %v, notice (-want +got):\n%s", tt.deprecation, tt.sunset, err, diff)
		}
	}
	for _, value := range []string{"", "@", "@-", "1764892800", "@1764892800.0", "@1e9", "@0x10", "@ 1", "@1000000000000000", "@9223372036854775808", "true", "(@1)"} {
		if got, ok, err := read(http.Header{"Deprecation": {value}}); err == nil || !ok {
			t.Errorf("Deprecation %q is %v, want an error", value, got.Since)
		}
	}
	for _, value := range []string{"@1922659200", "2030-12-05T00:00:00Z", "Thu, 05 Dec 2030 00:00:00 UTC", "Thu, 05 Dec 2030 00:00:00 +0000", "Thu, 29 Feb 2030 00:00:00 GMT", "Thursday, 05-Dec-30 00:00:00 PST"} {
		if got, ok, err := read(http.Header{"Sunset": {value}}); err == nil || !ok {
			t.Errorf("Sunset %q is %v, want an error", value, got.Sunset)
		}
	}
}

func TestLinkSyntax(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fields []string
		want   string // the target of the sunset link
	}{
		{"quoted", []string{`</a>; rel="sunset"`}, "/a"},
		{"token", []string{`</a>;rel=sunset`}, "/a"},
		{"white space and case", []string{"\t< /a > ;\tREL = \"Sunset\" ;"}, "/a"},
		{"empty elements", []string{` , ,</a>; rel=sunset,,`}, "/a"},
		{"commas and semicolons inside", []string{`</a,b;c>; title="x, </y>; rel=\"z\""; rel="sunset"`}, "/a,b;c"},
		{"escapes", []string{`</a>; rel="su\nset"`}, "/a"},
		{"several in a field", []string{`</a>; rel=next, </b>; rel=sunset; type="text/html"`}, "/b"},
		{"several fields", []string{`</a>; rel=next`, `</b>; rel=sunset`}, "/b"},
		{"list of relations", []string{`</a>; rel="next  sunset"`}, "/a"},
		{"part of a relation", []string{`</a>; rel="sunset-2"`}, ""},
		{"first rel counts", []string{`</a>; rel=next; rel=sunset`}, ""},
		{"first rel counts, though empty", []string{`</a>; rel=""; rel=sunset, </b>; rel=sunset`}, "/b"},
		{"parameter without value", []string{`</a>; crossorigin; title*=UTF-8''%e2%82%ac; rel=sunset`}, "/a"},
		{"no rel", []string{`</a>, </b>; rel=sunset`}, "/b"},
		{"garbage after a quoted value", []string{`</a>; rel="next"x; y, </b>; rel=sunset`}, "/b"},
		{"quote without end", []string{`</a>; title="x, </b>; rel=sunset`}, ""},
		{"quoted rel without end", []string{`</a>; rel="sunset`}, "/a"},
		{"backslash at the end", []string{`</a>; rel="sunset\`}, ""},
		{"no brackets", []string{`/a; rel=next, </b>; rel=sunset`}, ""},
		{"bracket without end", []string{`</a; rel=sunset`}, ""},
		{"malformed field beside a good one", []string{`garbage`, `</a>; rel=sunset`}, "/a"},
		{"too long", []string{strings.Repeat(" ", 16<<10), `</b>; rel=sunset`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := read(http.Header{"Sunset": {sunsetValue}, "Link": tt.fields})
			if err != nil || got.SunsetInfo != tt.want {
				t.Errorf("%q has the sunset link %q, %v, want %q", tt.fields, got.SunsetInfo, err, tt.want)
			}
		})
	}
}

// What is written is read back, whatever stands beside it.
func FuzzNotices(f *testing.F) {
	for _, s := range []string{`</a>; rel="next"`, `</a,b>;title="\"";rel="x y"`, `<`, `<>`, `</a>;;;,`, `</a>; rel="`, "/v1/pets?status=available"} {
		f.Add(deprecationValue, sunsetValue, s)
	}
	f.Add("@-1;a", "Sunday, 06-Nov-94 08:49:37 GMT", `</b>; anchor="#x"; rel="\p\r\e\v"`)
	f.Fuzz(func(t *testing.T, since, sunset, text string) {
		h := http.Header{"Deprecation": {since}, "Sunset": {sunset}, "Link": {text}}
		n, _, err := read(h)
		for _, target := range []string{n.Documentation, n.SunsetInfo, n.Successor} {
			if !strings.Contains(text, target) {
				t.Errorf("the target %q is nowhere in %q", target, text)
			}
		}
		d, invalid := deprecation.New(deprecation.Options{Since: n.Since, Sunset: n.Sunset, Successor: text, Documentation: n.Documentation, Now: func() time.Time { return n.Since }})
		if err != nil || invalid != nil {
			return
		}
		resp := serve(d.Headers(ok), http.MethodGet, "/")
		again, _, err := read(resp.Header())
		if again.Since != n.Since || again.Successor != text || again.Documentation != n.Documentation || err != nil {
			t.Errorf("written of %v and %q, and read again as %v, %v", n, text, again, err)
		}
	})
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
