package main_test

import (
	"context"
	"encoding/json"
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
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, data}, err
}

// mustAsk is ask for a response of a status.
func mustAsk(t *testing.T, status int, method, url, key, body string) answer {
	t.Helper()
	a, err := ask(t.Context(), method, url, key, body)
	if err != nil {
		t.Fatal(err)
	}
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
