package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

type wirePet struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status"`
}

func decode[T any](t testing.TB, resp *contract.Response) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(resp.Data, &v); err != nil {
		t.Fatalf("%s %s: %v\n%.200s", resp.Method, resp.Target, err, resp.Data)
	}
	return v
}

func TestCreatePet(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	tests := []struct {
		name string
		body string
		want wirePet
	}{
		{"with everything", `{"name":"Duke","categoryId":3,"status":"sold"}`, wirePet{1, "Duke", 3, "sold"}},
		{"status is available by default", `{"name":"Felix","categoryId":7}`, wirePet{2, "Felix", 7, "available"}},
		{"the largest category", `{"name":"x","categoryId":9223372036854775807}`, wirePet{3, "x", 9223372036854775807, "available"}},
		{"an integer with a fraction of zero", `{"name":"x","categoryId":1.0}`, wirePet{4, "x", 1, "available"}},
		{"unknown members are ignored", `{"id":77,"name":"x","categoryId":1,"STATUS":"sold","x":null}`, wirePet{5, "x", 1, "available"}},
		{"a name of 255 code points", `{"name":"` + strings.Repeat("🐕", 255) + `","categoryId":1}`,
			wirePet{6, strings.Repeat("🐕", 255), 1, "available"}},
		{"a name of spaces, quotes and markup", `{"name":" \"<b>&\\ ","categoryId":1}`, wirePet{7, ` "<b>&\ `, 1, "available"}},
	}
	for _, test := range tests {
		resp := s.Post(t, "/v1/pets", test.body)
		want(t, resp, 201, "")
		if d := cmp.Diff(test.want, decode[wirePet](t, resp)); d != "" {
			t.Errorf("%s: the pet in the response (-want +got):\n%s", test.name, d)
		}
		location := fmt.Sprint("/v1/pets/", test.want.ID)
		if got := resp.Header.Get("Location"); got != location {
			t.Errorf("%s: Location is %q, want %q", test.name, got, location)
		}
		got := s.Get(t, location)
		want(t, got, 200, "")
		if d := cmp.Diff(test.want, decode[wirePet](t, got)); d != "" {
			t.Errorf("%s: the pet at Location (-want +got):\n%s", test.name, d)
		}
	}
}

func TestCreatePetRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	tests := map[string]struct {
		body    string
		pointer string // of the one thing that is wrong, where there is one
	}{
		"no name":                    {`{"categoryId":1}`, "/name"},
		"no category":                {`{"name":"x"}`, "/categoryId"},
		"a name in another case":     {`{"Name":"x","categoryId":1}`, "/name"},
		"a name that is null":        {`{"name":null,"categoryId":1}`, "/name"},
		"an empty name":              {`{"name":"","categoryId":1}`, "/name"},
		"a name of 256 code points":  {`{"name":"` + strings.Repeat("ä", 256) + `","categoryId":1}`, "/name"},
		"NUL in the name":            {`{"name":"a\u0000b","categoryId":1}`, "/name"},
		"a category over int64":      {`{"name":"x","categoryId":9223372036854775808}`, "/categoryId"},
		"a category under int64":     {`{"name":"x","categoryId":-9223372036854775809}`, "/categoryId"},
		"a category with a fraction": {`{"name":"x","categoryId":1.5}`, "/categoryId"},
		"a category as a string":     {`{"name":"x","categoryId":"1"}`, "/categoryId"},
		"an unknown status":          {`{"name":"x","categoryId":1,"status":"lost"}`, "/status"},
		"a status in another case":   {`{"name":"x","categoryId":1,"status":"Sold"}`, "/status"},
		"an empty status":            {`{"name":"x","categoryId":1,"status":""}`, "/status"},
		"a name twice":               {`{"name":"x","name":"y","categoryId":1}`, ""},
	}
	for name, test := range tests {
		resp := s.Post(t, "/v1/pets", test.body, "Accept: application/problem+json")
		if resp.StatusCode != 400 || resp.Code() != "invalid_body" {
			t.Errorf("%s: answered with %d %s, want 400 invalid_body", name, resp.StatusCode, resp.Data)
			continue
		}
		if e, _ := resp.Error(); test.pointer != "" && (len(e.Errors) != 1 || e.Errors[0].Pointer != test.pointer) {
			t.Errorf("%s: the errors are %v, want one at %s", name, e.Errors, test.pointer)
		}
		want(t, s.Post(t, "/v1/pets", test.body), 400, "invalid_body")
	}
	if list := s.Get(t, "/v1/pets"); string(list.Data) != "[]\n" {
		t.Errorf("a refused body stored a pet: %s", list.Data)
	}
}

func TestGetPet(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 2)
	want(t, s.Get(t, "/v1/pets/2"), 200, "")
	for _, id := range []string{
		"3", "9007199254740993", "9223372036854775807", // not there
		"0", "-1", "+1", "01", "1.0", "1e0", "0x1", "abc", "null", "9223372036854775808", "99999999999999999999",
		"%31x", "1%00", "%00", "1%2F", "..%2Fpets", "%2F1", "%2e%2e%2f1", "1%20", "%201", "%D9%A1", "1;a=b", "1,2", "%25", "%FF",
		strings.Repeat("1", 8000),
	} {
		want(t, s.Get(t, "/v1/pets/"+id), 404, "pet_not_found")
	}
	want(t, s.Get(t, "/v1/pets/%31"), 200, "") // an encoded digit is that digit (RFC 3986 section 2.3)
	want(t, s.Get(t, "/v1/pets/1?whatever=%zz;"), 200, "")
}

func TestMethodsThatReadHaveTheFieldsOfGET(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 30)
	for _, target := range []string{"/v1/pets", "/v1/pets?limit=100", "/v1/pets/1", "/v1/pets/99", "/v1/pets?limit=x", "/v1/nothing", "/v1/usage"} {
		get := s.Get(t, target, "Accept-Encoding: gzip")
		head := s.Do(t, contract.Request{Method: http.MethodHead, Target: target, Header: []string{"Accept-Encoding: gzip"}})
		if head.StatusCode != get.StatusCode {
			t.Errorf("HEAD %s: status %d, and %d with GET", target, head.StatusCode, get.StatusCode)
		}
		for _, h := range []http.Header{get.Header, head.Header} {
			for _, name := range []string{"X-Request-Id", "X-Ratelimit-Remaining", "Date"} {
				h.Del(name)
			}
		}
		if d := cmp.Diff(get.Header, head.Header); d != "" {
			t.Errorf("HEAD %s: the header section (-GET +HEAD):\n%s", target, d)
		}
	}
}

// postName adds a pet of this name, which is sent as it is and not escaped.
func postName(t *testing.T, c *contract.Client, name string) *contract.Response {
	t.Helper()
	text, err := json.Marshal(name)
	must(t, err)
	return c.Post(t, "/v1/pets", `{"name":`+string(text)+`,"categoryId":1}`)
}

// A name has a visible character and nothing that reorders the text around it.
// Invisible characters beside visible ones are kept, because emoji and several scripts
// need them.
func TestNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	refused := []string{"", " ", strings.Repeat(" ", 255), "a\x00", "\x7f", "a\u009f", "\u200b \u200b", "\u200d\u200c", "\u3000\u2003\u00a0"}
	for _, blank := range "\t \u00a0\u00ad\u034f\u115f\u1160\u1680\u180e\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
		"\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u2060\u2061\u2064\u206a\u206f\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0" +
		"\U0001bca0\U0001d173\U000e0001\U000e0041\U000e007f\U000e0100\U000e01ef\U000e0fff" {
		refused = append(refused, string(blank), string(blank)+" "+string(blank))
	}
	for _, control := range "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		refused = append(refused, string(control), "Duke"+string(control), string(control)+"Duke", "Du"+string(control)+"ke")
	}
	for _, name := range refused {
		resp := postName(t, &s.Client, name)
		if resp.StatusCode != 400 || resp.Code() != "invalid_body" {
			t.Errorf("the name %+q: %d %q, want 400 invalid_body", name, resp.StatusCode, resp.Code())
		}
		for _, r := range string(resp.Data) {
			if r > 0x7e || r < ' ' && r != '\n' {
				t.Errorf("the name %+q: the answer holds %U: %q", name, r, resp.Data)
				break
			}
		}
	}
	for _, name := range []string{
		"x", " x ", "\u3000x", "Der Hund", "\u5c0f\u72ac", "\u05db\u05dc\u05d1", "\u0643\u0644\u0628", "نمی\u200cخواهم", "क्\u200dष", "e\u0301",
		"\U0001f415\u200d\U0001f9ba", "\u2764\ufe0f", "\u845b\U000e0100", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "Du\u200bke", "Duke\ufe0f", ".", "'; DROP TABLE pets", strings.Repeat("\U0001f415", 255), "a\u2028b",
	} {
		resp := postName(t, &s.Client, name)
		want(t, resp, 201, "")
		var stored struct{ Name string }
		if err := json.Unmarshal(resp.Data, &stored); err != nil || stored.Name != name {
			t.Errorf("the name %+q came back as %+q (%v)", name, stored.Name, err)
		}
	}
}
