package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// postName adds a pet of this name, which is sent as it is and not escaped.
func postName(t *testing.T, c *contract.Client, name string) *contract.Response {
	t.Helper()
	text, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
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
		"\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u2060\u2061\u2064\u206a\u206f\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0" {
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
		"\U0001f415\u200d\U0001f9ba", "\u2764\ufe0f", "Du\u200bke", "Duke\ufe0f", ".", "'; DROP TABLE pets", strings.Repeat("\U0001f415", 255), "a\u2028b",
	} {
		resp := postName(t, &s.Client, name)
		want(t, resp, 201, "")
		var stored struct{ Name string }
		if err := json.Unmarshal(resp.Data, &stored); err != nil || stored.Name != name {
			t.Errorf("the name %+q came back as %+q (%v)", name, stored.Name, err)
		}
	}
	const message = "The request body is not valid: /name must be visible text without control characters or bidirectional controls."
	if e, err := postName(t, &s.Client, "\u202ekuD").Error(); err != nil || e.Message != message {
		t.Errorf("the message is %q, want %q", e.Message, message)
	}
}

// A name that was stored under older rules does not break the promise of a
// response.
func TestNamesOfOldPets(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	pet := s.pets(t, 1)[0]
	if _, err := s.db.CreatePet(t.Context(), newPetNamed("\u202ekuD")); err != nil {
		t.Fatal(err)
	}
	want(t, s.Get(t, "/v1/pets"), 200, "")
	want(t, s.Get(t, fmt.Sprint("/v1/pets/", pet.ID+1)), 200, "")
}
