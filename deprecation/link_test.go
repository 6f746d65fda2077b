package deprecation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/deprecation"
)

func TestFormatLinks(t *testing.T) {
	got, err := deprecation.FormatLinks(
		deprecation.Link{Target: "/v1/pets?limit=20&status=sold", Rel: "next"},
		deprecation.Link{Target: "https://docs.example/a,b;c", Rel: "deprecation https://example.com/rel", Type: "t!xt/" + strings.Repeat("h", 127)},
		deprecation.Link{Target: "#x", Rel: "item", Anchor: "/v1/%C3%A9"},
	)
	want := `</v1/pets?limit=20&status=sold>; rel="next", ` +
		`<https://docs.example/a,b;c>; rel="deprecation https://example.com/rel"; type="t!xt/` + strings.Repeat("h", 127) + `", ` +
		`<#x>; rel="item"; anchor="/v1/%C3%A9"`
	if err != nil || got != want {
		t.Errorf("FormatLinks = %q, %v\nwant %q", got, err, want)
	}
	for _, tt := range []struct {
		link deprecation.Link
		want string
	}{
		{deprecation.Link{Target: "", Rel: "next"}, "deprecation: link 0: target: is empty"},
		{deprecation.Link{Target: "/pets{?status}", Rel: "next"}, "deprecation: link 0: target: is a URI template, not a URI reference"},
		{deprecation.Link{Target: "/a b", Rel: "next"}, "deprecation: link 0: target: has a space that is not percent-encoded"},
		{deprecation.Link{Target: "/a>b", Rel: "next"}, `deprecation: link 0: target: has the character '>', which is not allowed in a URI reference`},
		{deprecation.Link{Target: "/a\r\nX: y", Rel: "next"}, `deprecation: link 0: target: has the character '\r', which is not allowed in a URI reference`},
		{deprecation.Link{Target: "/é", Rel: "next"}, `deprecation: link 0: target: has the character 'é', which is not allowed in a URI reference`},
		{deprecation.Link{Target: "/a%2", Rel: "next"}, "deprecation: link 0: target: has a percent sign that is not followed by two hexadecimal digits"},
		{deprecation.Link{Target: "/a%2g", Rel: "next"}, "deprecation: link 0: target: has a percent sign that is not followed by two hexadecimal digits"},
		{deprecation.Link{Target: "/a%g2", Rel: "next"}, "deprecation: link 0: target: has a percent sign that is not followed by two hexadecimal digits"},
		{deprecation.Link{Target: "/a%zz", Rel: "next"}, "deprecation: link 0: target: has a percent sign that is not followed by two hexadecimal digits"},
		{deprecation.Link{Target: "https://exa mple/", Rel: "next"}, "deprecation: link 0: target: has a space that is not percent-encoded"},
		{deprecation.Link{Target: "http://[::1", Rel: "next"}, "deprecation: link 0: target: is not a URI reference"},
		{deprecation.Link{Target: "/"}, "deprecation: link 0: rel: is empty"},
		{deprecation.Link{Target: "/", Rel: `a"b`}, `deprecation: link 0: rel: has the character '"', which is not allowed in a URI reference`},
		{deprecation.Link{Target: "/", Rel: "a  b"}, "deprecation: link 0: rel: is empty"},
		{deprecation.Link{Target: "/", Rel: "a", Type: "html"}, "deprecation: link 0: type: is not a media type"},
		{deprecation.Link{Target: "/", Rel: "a", Type: "!text/html"}, "deprecation: link 0: type: is not a media type"},
		{deprecation.Link{Target: "/", Rel: "a", Type: "text/" + strings.Repeat("h", 128)}, "deprecation: link 0: type: is not a media type"},
		{deprecation.Link{Target: "/", Rel: "a", Type: `text/"`}, "deprecation: link 0: type: is not a media type"},
		{deprecation.Link{Target: "/", Rel: "a", Anchor: "a b"}, "deprecation: link 0: anchor: has a space that is not percent-encoded"},
	} {
		if got, err := deprecation.FormatLinks(tt.link); err == nil || err.Error() != tt.want {
			t.Errorf("FormatLinks(%+v) = %q, %v\nwant error %q", tt.link, got, err, tt.want)
		}
	}
}

func TestParseLinks(t *testing.T) {
	links := func(l ...deprecation.Link) []deprecation.Link { return l }
	next := links(deprecation.Link{Target: "/a", Rel: "next"})
	for _, tt := range []struct {
		name   string
		fields []string
		want   []deprecation.Link
	}{
		{"none", nil, nil},
		{"quoted", []string{`</a>; rel="next"`}, next},
		{"token", []string{`</a>;rel=next`}, next},
		{"white space", []string{"\t</a> ;\trel = \"next\" ;"}, next},
		{"upper case name", []string{`</a>; REL=next`}, next},
		{"empty elements", []string{` , ,</a>; rel=next,,`}, next},
		{"commas and semicolons inside", []string{`</a,b;c>; title="x, </y>; rel=\"z\""; rel="next"`}, links(deprecation.Link{Target: "/a,b;c", Rel: "next"})},
		{"escapes", []string{`</a>; rel="ne\xt"`}, next},
		{"several in a field", []string{`</a>; rel=next, </b>; rel=prev; type="text/html"`}, links(next[0], deprecation.Link{Target: "/b", Rel: "prev", Type: "text/html"})},
		{"several fields", []string{`</a>; rel=next`, `</b>; rel=prev`}, links(next[0], deprecation.Link{Target: "/b", Rel: "prev"})},
		{"list of relations", []string{`</a>; rel="next  successor-version"`}, links(deprecation.Link{Target: "/a", Rel: "next  successor-version"})},
		{"first rel counts", []string{`</a>; rel=next; rel=prev; type=a/b; type=c/d`}, links(deprecation.Link{Target: "/a", Rel: "next", Type: "a/b"})},
		{"first rel counts, though empty", []string{`</a>; rel=""; rel=prev, </b>; rel=prev`}, links(deprecation.Link{Target: "/b", Rel: "prev"})},
		{"anchor", []string{`</a>; anchor="#x"; rel=next`}, links(deprecation.Link{Target: "/a", Rel: "next", Anchor: "#x"})},
		{"extended parameter", []string{`</a>; title*=UTF-8''%e2%82%ac; rel=next`}, next},
		{"parameter without value", []string{`</a>; crossorigin; rel=next`}, next},
		{"no rel", []string{`</a>, </b>; rel=prev`}, links(deprecation.Link{Target: "/b", Rel: "prev"})},
		{"empty target", []string{`<>; rel=self`}, links(deprecation.Link{Target: "", Rel: "self"})},
		{"garbage after a quoted value", []string{`</a>; rel="next"x; y, </b>; rel=prev`}, links(next[0], deprecation.Link{Target: "/b", Rel: "prev"})},
		{"quote without end", []string{`</a>; rel=next; title="x, </b>; rel=prev`}, next},
		{"quoted rel without end", []string{`</a>; rel="next`}, next},
		{"backslash at the end", []string{`</a>; rel="next\`}, links(deprecation.Link{Target: "/a", Rel: `next\`})},
		{"no brackets", []string{`/a; rel=next, </b>; rel=prev`}, nil},
		{"bracket without end", []string{`</a; rel=next`}, nil},
		{"malformed field beside a good one", []string{`garbage`, `</a>; rel=next`}, next},
		{"too long", []string{`</a>; rel=next`, strings.Repeat(" ", 16<<10), `</b>; rel=prev`}, next},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, deprecation.ParseLinks(tt.fields)); diff != "" {
				t.Errorf("ParseLinks(%q) (-want +got):\n%s", tt.fields, diff)
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		if n := len(deprecation.ParseLinks([]string{strings.Repeat("</>;rel=a,", 200)})); n != 100 {
			t.Errorf("ParseLinks returned %d links, promised are at most 100", n)
		}
	})
}

func TestLinkIs(t *testing.T) {
	link := deprecation.Link{Rel: "Next successor-version https://example.com/Rel"}
	for rel, want := range map[string]bool{
		"next": true, "SUCCESSOR-VERSION": true, "https://example.com/rel": true,
		"": false, "ne": false, "next successor-version": false, "\u017fuccessor-version": false,
	} {
		if got := link.Is(rel); got != want {
			t.Errorf("Is(%q) = %v, want %v", rel, got, want)
		}
	}
}

func FuzzParseLinks(f *testing.F) {
	for _, s := range []string{
		`</a>; rel="next", </b>; rel=prev`, `</a,b>;title="\"";rel="x y"`, `<`, `<>`, `</a>;;;,`, `</a>; rel="`, successorLink,
	} {
		f.Add(s, "")
	}
	f.Add(`</a>; rel=next`, `</b>; anchor="#x"; rel="\p\r\e\v"`)
	f.Fuzz(func(t *testing.T, first, second string) {
		links := deprecation.ParseLinks([]string{first, second})
		if len(links) > 100 {
			t.Errorf("got %d links, promised are at most 100", len(links))
		}
		for _, l := range links {
			if l.Rel == "" {
				t.Errorf("got %+v, a link without a relation", l)
			}
			if !strings.Contains(first+second, l.Target) {
				t.Errorf("the target %q is nowhere in %q, %q", l.Target, first, second)
			}
		}
		// What can be written is read back.
		if value, err := deprecation.FormatLinks(links...); err == nil {
			if diff := cmp.Diff(links, deprecation.ParseLinks([]string{value}), equateEmpty); diff != "" && len(value) < 16<<10 {
				t.Errorf("read from %q (-written +read):\n%s", value, diff)
			}
		}
	})
}

var equateEmpty = cmp.FilterValues(
	func(a, b []deprecation.Link) bool { return len(a) == 0 && len(b) == 0 },
	cmp.Comparer(func(_, _ []deprecation.Link) bool { return true }),
)

func FuzzDates(f *testing.F) {
	for _, s := range []string{deprecationValue, sunsetValue, "@-1;a", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sat, 31 Dec 2016 23:59:60 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if at, err := deprecation.ParseDeprecation(value); err == nil {
			again, err := deprecation.ParseDeprecation(deprecation.FormatDeprecation(at))
			if err != nil || !again.Equal(at) {
				t.Errorf("%q is %v, written and read again %v, %v", value, at, again, err)
			}
		}
		if at, err := deprecation.ParseSunset(value); err == nil && at.Year() < 10000 {
			again, err := deprecation.ParseSunset(deprecation.FormatSunset(at))
			if err != nil || !again.Equal(at) {
				t.Errorf("%q is %v, written and read again %v, %v", value, at, again, err)
			}
		}
	})
}

func ExampleParseLinks() {
	for _, l := range deprecation.ParseLinks([]string{
		`</v1/pets?status=available>; rel="successor-version", <https://docs.example/a,b>; rel="deprecation"; type="text/html"`,
	}) {
		fmt.Println(l.Rel, l.Target)
	}
	// Output:
	// successor-version /v1/pets?status=available
	// deprecation https://docs.example/a,b
}
