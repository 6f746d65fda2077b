package transport_test

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// The caller learns what the envelope says, and the body of each refusal is closed, so
// that no connection stays open.
func TestRefusalIsReadAndClosed(t *testing.T) {
	inBubble(t, "bubble", func(t *testing.T) {
		script := newScript("429 Retry-After: 1",
			"429 Retry-After: 3600\nContent-Type: application/json\n\n"+`{"code":"rate_limit_exceeded","message":"You have reached the limit.","status":429}`)
		var body closing
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := script.RoundTrip(r)
			body.Reader, resp.Body = resp.Body, &body
			return resp, err
		})
		r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newTransport(t, base, transport.Options{}).RoundTrip(r)
		if limit := limitOf(t, err); limit.Message != "You have reached the limit." || limit.Code != "rate_limit_exceeded" {
			t.Errorf("the error is %+v, want the code and the message of the envelope", limit)
		}
		if body.closed != 2 {
			t.Errorf("%d bodies of 2 refusals were closed", body.closed)
		}
	})
}
