package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
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

// signalling tells when CreatePetIf has begun and waits until it may go on.
type signalling struct {
	store.Pets
	begun, goOn chan struct{}
}

func (s *signalling) CreatePetIf(ctx context.Context, p store.NewPet, k *store.IdempotencyKey, c store.Condition) (store.Pet, bool, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return s.Pets.CreatePetIf(ctx, p, k, c)
}

// The client loses its connection at any moment and sends the request again.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"after sending", "while the pet is stored", "before the answer is read"} {
		t.Run(moment, func(t *testing.T) {
			var gate *signalling
			s := start(t, func(c *api.Config) {
				if moment == "while the pet is stored" {
					gate = &signalling{c.Pets, make(chan struct{}, 1), make(chan struct{})}
					c.Pets = gate
				}
			})
			const keys = 20
			for i := range keys {
				line := once(fmt.Sprint(i))
				conn := s.Dial(t)
				_, err := fmt.Fprintf(conn, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
					s.Key, line, len(duke), duke)
				must(t, err)
				switch moment {
				case "while the pet is stored":
					<-gate.begun
				case "before the answer is read":
					_, err := io.ReadFull(conn, make([]byte, 1))
					must(t, err)
				}
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // a reset, as after a crash
					t.Fatal(err)
				}
				conn.Close()
				if i == 0 && gate != nil {
					close(gate.goOn)
				}
				want(t, s.Post(t, "/v1/pets", duke, line), 201, "")
				if gate != nil {
					<-gate.begun
				}
			}
			if n := s.stored(t); n != keys {
				t.Errorf("%d pets are stored, want %d: one for each key", n, keys)
			}
		})
	}
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
