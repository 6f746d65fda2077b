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

// A request that is repeated within a day by any key of its owner creates nothing.
func TestRepeatedRequestCreatesOnePet(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ada, too, bob := s.with(s.key(t, "ada", "free")), s.with(s.key(t, "ada", "free")), s.with(s.key(t, "bob", "free"))
	var first *contract.Response
	var responses []*contract.Response
	steps := []struct {
		name   string
		client *contract.Client
		body   string
		line   string
		later  time.Duration // than the step before
		status int
		replay bool
		pets   int
	}{
		{"the first", ada, duke, once("s3cret"), 0, 201, false, 1},
		{"again", ada, duke, once("s3cret"), 0, 201, true, 1},
		{"without quotes", ada, duke, "Idempotency-Key: s3cret", 0, 201, true, 1},
		{"the same in other words", ada, ` { "categoryId" : 3.0e0, "ignored" : 1, "status": "available", "name":"D\u0075ke" } `, once("s3cret"), 0, 201, true, 1},
		{"another key of the owner", too, duke, once("s3cret"), 24*time.Hour - time.Second, 201, true, 1},
		{"another category", ada, `{"name":"Duke","categoryId":4}`, once("s3cret"), 0, 422, false, 1},
		{"another name", ada, `{"name":"Duk","categoryId":3}`, once("s3cret"), 0, 422, false, 1},
		{"another status", ada, `{"name":"Duke","categoryId":3,"status":"sold"}`, once("s3cret"), 0, 422, false, 1},
		{"another owner", bob, duke, once("s3cret"), 0, 201, false, 2},
		{"another idempotency key", ada, duke, once("b"), 0, 201, false, 3},
		{"none", ada, duke, "X: y", 0, 201, false, 4},
		{"a day later", ada, duke, once("s3cret"), time.Second, 201, false, 5},
	}
	for i, step := range steps {
		s.clock.advance(step.later)
		resp := step.client.Post(t, "/v1/pets", step.body, step.line)
		responses = append(responses, resp)
		want(t, resp, step.status, map[int]string{422: "idempotency_key_reused"}[step.status])
		if i == 0 {
			first = resp
		}
		if got := resp.Header.Get("Idempotent-Replayed"); got != map[bool]string{true: "true"}[step.replay] {
			t.Errorf("%s: Idempotent-Replayed is %q, want it to say %t", step.name, got, step.replay)
		}
		if step.replay && (string(resp.Data) != string(first.Data) || resp.Header.Get("Location") != first.Header.Get("Location")) {
			t.Errorf("%s: the answer is %s at %s, want the first one: %s at %s", step.name,
				resp.Data, resp.Header.Get("Location"), first.Data, first.Header.Get("Location"))
		}
		if n := s.stored(t); n != step.pets {
			t.Errorf("%s: %d pets are stored, want %d", step.name, n, step.pets)
		}
	}
	text, lines := s.logged(t)
	for i, step := range steps {
		if got := lines[responses[i].Header.Get("X-Request-Id")]["replayed"] == true; got != step.replay {
			t.Errorf("%s: the log says that it is a replay: %t, want %t", step.name, got, step.replay)
		}
	}
	if strings.Contains(text, "s3cret") {
		t.Errorf("the log holds the key of a request: %s", text)
	}
}

// What was refused is not remembered.
func TestRefusedRequestsAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.Post(t, "/v1/pets", `{"name":"Duke"}`, once("a")), 400, "invalid_body")
	want(t, s.Post(t, "/v1/pets", duke, once("a"), "If-None-Match: *"), 412, "precondition_failed")
	want(t, s.Post(t, "/v1/pets", duke, once("a"), once("a")), 400, "invalid_idempotency_key")
	want(t, s.Post(t, "/v1/pets", duke, once("a")), 201, "")
	want(t, s.Get(t, "/v1/pets", "Idempotency-Key: a b"), 200, "") // has no meaning there
}
