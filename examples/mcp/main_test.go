package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// withKey sends an API key.
type withKey string

func (key withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(key))
	return http.DefaultTransport.RoundTrip(r)
}

// connect returns a client of the SDK that sends a key.
func connect(t *testing.T, url, key string) (*mcp.ClientSession, error) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withKey(key)}}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// call calls a tool, and returns the units that the result names.
func call(t *testing.T, session *mcp.ClientSession, tool string) (units any, err error) {
	arguments := map[string]any{}
	if tool == "ask" {
		arguments["Text"] = "why the sky is blue"
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, err
	}
	if result.IsError {
		t.Errorf("%s: %v, want a result", tool, result.Content)
	}
	return result.Meta["units"], nil
}

// Ann has 60 units a minute. Ask costs 50 until it has settled, and 14 then.
func TestToolsAreLimited(t *testing.T) {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC))
	handler, keys, err := newHandler(memory.Options{Now: clock.Now})
	testcheck.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ann := testcheck.Must(connect(t, server.URL, keys["ann"]))
	admitted := func(session *mcp.ClientSession, tool string, want any) {
		t.Helper()
		if units, err := call(t, session, tool); err != nil || units != want {
			t.Errorf("%s: %v units, %v, want %v and no error", tool, units, err, want)
		}
	}

	for _, tool := range testcheck.Must(ann.ListTools(t.Context(), nil)).Tools {
		if schema, ok := tool.OutputSchema.(map[string]any); ok && schema["type"] != "object" {
			t.Errorf("the output of %s is of type %v, want an object or no schema", tool.Name, schema["type"])
		}
	}
	admitted(ann, "ask", 14.)
	admitted(ann, "time", nil)
	if _, err := call(t, ann, "unknown"); err == nil { // costs a unit, as a 404 does
		t.Error("a tool that does not exist is called")
	}
	_, err = call(t, ann, "ask")
	denial, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		t.Fatalf("ask beyond the limit: %v, want a JSON-RPC error", err)
	}
	const text = "This request costs 50 units, and 44 of the 60 units per minute are left. Wait 17 s. "
	const data = `{"code":"rate_limit_exceeded","retryAfterSeconds":17}`
	if denial.Code != 429 || !strings.HasPrefix(denial.Message, text) || string(denial.Data) != data {
		t.Errorf("ask beyond the limit: %d %q with %s, want 429 %q with %s", denial.Code, denial.Message, denial.Data, text, data)
	}

	admitted(ann, "time", nil) // what fits is admitted
	bob := testcheck.Must(connect(t, server.URL, keys["bob"]))
	for range 5 { // more than a minute of ann's plan
		admitted(bob, "ask", 14.)
	}
	clock.Advance(17 * time.Second)
	admitted(ann, "ask", 14.)
	if _, err := connect(t, server.URL, "demo_wrong"); err == nil {
		t.Error("a client without a key is connected")
	}
}
