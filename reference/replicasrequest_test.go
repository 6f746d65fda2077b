//go:build unix

package main_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// A call is a request of a client of a fleet.
type call struct {
	method  string // "": GET
	path    string // "": that of the pets
	key     string // "": none
	network string // the address of the client; "": one of the proxy's
	once    string // the idempotency key; "": none
	match   string // If-None-Match; "": none
	ifMatch string // If-Match; "": none
}

// callers are the connections of all clients of fleets.
var callers = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// send sends the request, with a new pet if it is a POST, to a replica or a balancer.
func (c call) send(ctx context.Context, base string) (answer, error) {
	var body io.Reader
	if c.method == http.MethodPost {
		// Without GetBody, the client of net/http does not send the request again.
		body = io.MultiReader(strings.NewReader(pet))
	}
	r, err := http.NewRequestWithContext(ctx, c.method, base+cmp.Or(c.path, "/v1/pets"), body)
	if err != nil {
		return answer{}, err
	}
	set := func(name, format, value string) {
		if value != "" {
			r.Header.Set(name, fmt.Sprintf(format, value))
		}
	}
	set("Authorization", "Bearer %s", c.key)
	set("X-Forwarded-For", "%s", c.network)
	set("If-None-Match", "%s", c.match)
	set("If-Match", "%s", c.ifMatch)
	set("Idempotency-Key", `"%s"`, c.once)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(len(pet))
	}
	resp, err := callers.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, data}, err
}

// mustSend is send for a response of a status.
func (c call) mustSend(t *testing.T, status int, base string) answer {
	t.Helper()
	a, err := c.send(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != status {
		t.Fatalf("%+v: answered with %d, want %d\n%s", c, a.status, status, a.body)
	}
	return a
}

// remaining returns X-RateLimit-Remaining.
func (a answer) remaining() (int64, error) {
	return strconv.ParseInt(a.header.Get("X-RateLimit-Remaining"), 10, 64)
}

// code returns the code of an error.
func (a answer) code() string {
	var e struct{ Code string }
	if err := json.Unmarshal(a.body, &e); err != nil {
		return err.Error()
	}
	return e.Code
}

// petID returns the ID of the pet of a response.
func (a answer) petID() (int64, error) {
	var pet struct{ ID int64 }
	err := json.Unmarshal(a.body, &pet)
	return pet.ID, err
}
