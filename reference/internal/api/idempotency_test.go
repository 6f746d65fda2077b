package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

const duke = `{"name":"Duke","categoryId":3}`

// once is the line of an idempotency key.
func once(key string) string { return `Idempotency-Key: "` + key + `"` }

// stored returns how many pets there are.
func (s *service) stored(t testing.TB) int {
	t.Helper()
	pets, more, err := s.db.ListPets(t.Context(), store.ListQuery{Limit: store.MaxList})
	if err != nil || more {
		t.Fatalf("list pets: more %t, %v", more, err)
	}
	return len(pets)
}

func TestRepeatedRequestCreatesOnePet(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 3)
	first := s.Post(t, "/v1/pets", duke, once("a"))
	want(t, first, 201, "")
	if got := first.Header.Get("Idempotent-Replayed"); got != "" {
		t.Errorf("Idempotent-Replayed of the first answer is %q, want none", got)
	}
	want(t, s.Post(t, "/v1/pets", duke, "Idempotency-Key: a"), 201, "") // also without quotes
	for _, body := range []string{duke, ` { "categoryId" : 3.0e0, "ignored" : 1, "status": "available", "name":"D\u0075ke" } `} {
		again := s.Post(t, "/v1/pets", body, once("a"))
		want(t, again, 201, "")
		if string(again.Data) != string(first.Data) || again.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("%s: the answer is %s at %s, want the first one: %s at %s", body,
				again.Data, again.Header.Get("Location"), first.Data, first.Header.Get("Location"))
		}
		if got := again.Header.Get("Idempotent-Replayed"); got != "true" {
			t.Errorf("Idempotent-Replayed is %q, want true", got)
		}
	}
	for _, body := range []string{`{"name":"Duke","categoryId":4}`, `{"name":"Duk","categoryId":3}`, `{"name":"Duke","categoryId":3,"status":"sold"}`} {
		want(t, s.Post(t, "/v1/pets", body, once("a")), 422, "idempotency_key_reused")
	}
	if n := s.stored(t); n != 4 {
		t.Errorf("%d pets are stored, want 4", n)
	}
	want(t, s.Post(t, "/v1/pets", duke, once("b")), 201, "")
	want(t, s.Post(t, "/v1/pets", duke), 201, "")
	want(t, s.Post(t, "/v1/pets", duke), 201, "")
	if n := s.stored(t); n != 7 {
		t.Errorf("%d pets are stored, want 7: other keys, and requests without one, are other requests", n)
	}
}

// A key belongs to an owner, and not to one of its API keys.
func TestIdempotencyKeysOfOwners(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ada, too, bob := s.with(s.key(t, "ada", "free")), s.with(s.key(t, "ada", "free")), s.with(s.key(t, "bob", "free"))
	for _, test := range []struct {
		name     string
		client   *contract.Client
		replayed string
	}{{"first", ada, ""}, {"another key of the owner", too, "true"}, {"another owner", bob, ""}} {
		resp := test.client.Post(t, "/v1/pets", duke, once("a"))
		want(t, resp, 201, "")
		if got := resp.Header.Get("Idempotent-Replayed"); got != test.replayed {
			t.Errorf("%s: Idempotent-Replayed is %q, want %q", test.name, got, test.replayed)
		}
	}
}

func TestIdempotencyKeyLastsADay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, test := range []struct {
		after time.Duration
		pets  int
	}{{0, 1}, {24*time.Hour - time.Second, 1}, {time.Second, 2}, {24*time.Hour - time.Second, 2}} {
		s.clock.advance(test.after)
		want(t, s.Post(t, "/v1/pets", duke, once("a")), 201, "")
		if n := s.stored(t); n != test.pets {
			t.Errorf("another %v later %d pets are stored, want %d", test.after, n, test.pets)
		}
	}
}

// What was refused is not remembered, and every request is charged.
func TestRefusedRequestsAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "ada", "enterprise", "100/day"))
	want(t, c.Post(t, "/v1/pets", `{"name":"Duke"}`, once("a")), 400, "invalid_body")
	want(t, c.Post(t, "/v1/pets", duke, once("a"), "If-None-Match: *"), 412, "precondition_failed")
	want(t, c.Post(t, "/v1/pets", duke, "Idempotency-Key: a b"), 400, "invalid_idempotency_key")
	want(t, c.Post(t, "/v1/pets", duke, once("a"), once("a")), 400, "invalid_idempotency_key")
	for range 3 {
		want(t, c.Post(t, "/v1/pets", duke, once("a")), 201, "")
	}
	want(t, c.Post(t, "/v1/pets", `{"name":"Rex","categoryId":3}`, once("a")), 422, "idempotency_key_reused")
	if got := c.Get(t, "/v1/usage").Int("X-RateLimit-Remaining"); got != 92 {
		t.Errorf("%d requests are left, want 92 of 100 after 8", got)
	}
	want(t, s.Get(t, "/v1/pets", "Idempotency-Key: a"), 200, "") // has no meaning there
}

func TestReplayedInTheLog(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first, second := s.Post(t, "/v1/pets", duke, once("secret")), s.Post(t, "/v1/pets", duke, once("secret"))
	text, lines := s.logged(t)
	for resp, want := range map[*contract.Response]any{first: nil, second: true} {
		if got := lines[resp.Header.Get("X-Request-Id")]["replayed"]; got != want {
			t.Errorf("a line has replayed: %v, want %v", got, want)
		}
	}
	if len(lines) != 2 || strings.Contains(text, "secret") {
		t.Errorf("the log is %s, want two lines without the key", text)
	}
}
