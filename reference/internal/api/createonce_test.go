package api_test

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Of several clients that add a pet to the list which they have seen, one does.
func TestOneOfManyConditionalRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 40)
	const target = "/v1/pets?limit=100"
	for round := range 3 {
		etag := s.Get(t, target, acceptGzip).Header.Get("ETag")
		var wg sync.WaitGroup
		var added, refused atomic.Int32
		for range 20 {
			wg.Go(func() {
				switch resp := s.Post(t, target, duke, "If-Match: "+etag, acceptGzip); resp.StatusCode {
				case 201:
					added.Add(1)
				case 412:
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		if added.Load() != 1 || refused.Load() != 19 {
			t.Errorf("round %d: %d requests were performed and %d refused with 412, want 1 and 19", round, added.Load(), refused.Load())
		}
	}
}

// A client that sends a request again learns what became of the first one, although that
// has changed the list.
func TestRepeatedConditionalRequest(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	etag := s.Get(t, "/v1/pets").Header.Get("ETag")
	for _, replayed := range []string{"", "true", "true"} {
		resp := s.Post(t, "/v1/pets", duke, once("a"), "If-Match: "+etag)
		want(t, resp, 201, "")
		if got := resp.Header.Get("Idempotent-Replayed"); got != replayed {
			t.Errorf("Idempotent-Replayed is %q, want %q", got, replayed)
		}
	}
	want(t, s.Post(t, "/v1/pets", duke, once("b"), "If-Match: "+etag), 412, "precondition_failed")
	// RFC 9110 section 13.2.1: preconditions do not matter to a request that is refused anyway.
	want(t, s.Post(t, "/v1/pets", `{"name":"Rex","categoryId":3}`, once("a"), "If-Match: "+etag), 422, "idempotency_key_reused")
	if n := s.stored(t); n != 1 {
		t.Errorf("%d pets are stored, want 1", n)
	}
}
