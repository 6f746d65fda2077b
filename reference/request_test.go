package main_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request with a key, if that is not empty.
func ask(ctx context.Context, method, url, key, body string) (answer, error) {
	return call{method: method, key: key, body: body}.sendTo(ctx, url)
}

// mustAsk is ask for a response of a status.
func mustAsk(t *testing.T, status int, method, url, key, body string) answer {
	t.Helper()
	a, err := ask(t.Context(), method, url, key, body)
	must(t, err)
	if a.status != status {
		t.Fatalf("%s %s: answered with %d, want %d\n%s", method, url, a.status, status, a.body)
	}
	return a
}

// into reads the body of an answer as JSON.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// used returns how much of the one quota of a key is used.
func used(t *testing.T, p *process, key string) int64 {
	t.Helper()
	var usage struct {
		Quotas []struct{ Limit, Remaining int64 }
	}
	mustAsk(t, 200, "GET", p.api+"/v1/usage", key, "").into(t, &usage)
	if len(usage.Quotas) != 1 {
		t.Fatalf("usage has %d quotas, want 1", len(usage.Quotas))
	}
	return usage.Quotas[0].Limit - usage.Quotas[0].Remaining
}

// petIDs returns the IDs of all pets, page by page.
func petIDs(t *testing.T, p *process, key string) map[int64]bool {
	t.Helper()
	ids := map[int64]bool{}
	for next := "/v1/pets?limit=100"; next != ""; {
		a := mustAsk(t, 200, "GET", p.api+next, key, "")
		var pets []struct{ ID int64 }
		a.into(t, &pets)
		for _, pet := range pets {
			ids[pet.ID] = true
		}
		next = ""
		if link := a.header.Get("Link"); strings.Contains(link, `rel="next"`) {
			next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
		}
	}
	return ids
}

// eventually tries again until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A call is a request of a client.
type call struct {
	method string // "": GET
	path   string // "": that of the pets
	key    string // "": none
	body   string // JSON; "": none
	host   string // "": that of the URL
	origin string // of the page that sends it; "": none
	once   string // the idempotency key; "": none
	match  string // If-None-Match; "": none
}

// callers are the connections of all clients.
var callers = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// send sends the request, with a new pet if it is a POST, to a server.
func (c call) send(ctx context.Context, base string) (answer, error) {
	if c.method == http.MethodPost {
		c.body = pet
	}
	return c.sendTo(ctx, base+cmp.Or(c.path, "/v1/pets"))
}

func (c call) sendTo(ctx context.Context, url string) (answer, error) {
	var body io.Reader
	if c.body != "" {
		// Without GetBody, the client of net/http does not send the request again.
		body = io.MultiReader(strings.NewReader(c.body))
	}
	r, err := http.NewRequestWithContext(ctx, c.method, url, body)
	if err != nil {
		return answer{}, err
	}
	set := func(name, format, value string) {
		if value != "" {
			r.Header.Set(name, fmt.Sprintf(format, value))
		}
	}
	set("Authorization", "Bearer %s", c.key)
	set("Origin", "%s", c.origin)
	set("If-None-Match", "%s", c.match)
	set("Idempotency-Key", `"%s"`, c.once)
	r.Host = c.host
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(len(c.body))
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
	must(t, err)
	if a.status != status {
		t.Fatalf("%+v: answered with %d, want %d\n%s", c, a.status, status, a.body)
	}
	return a
}

// code returns the code of an error.
func (a answer) code() string {
	var e struct{ Code string }
	if err := json.Unmarshal(a.body, &e); err != nil {
		return err.Error()
	}
	return e.Code
}
