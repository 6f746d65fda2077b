// Mcp is a Model Context Protocol server whose tools cost units of a plan, by API key. The cost
// of the tool ask is known only afterwards.
//
//	go run ./examples/mcp
//	claude mcp add --transport http demo http://127.0.0.1:8081 --header "Authorization: Bearer $KEY"
//
// Keys are checked in HTTP. The limit is in the SDK: there it knows the tool, counts each call
// in a batch, and answers with a JSON-RPC error that clients can read. Of a 429, the client of
// the SDK passes on neither Retry-After nor the body.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	pro  = ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(600), ratelimit.PerDay(50_000))
)

// costs has what the tools cost, of ask the most that it can cost. Others cost 1.
var costs = map[string]int64{"ask": 50}

func main() {
	handler, keys, err := newHandler(memory.Options{})
	fmt.Printf("KEY=%s # free\nKEY=%s # pro\n", keys["ann"], keys["bob"])
	demo.Serve(handler, err)
}

// newHandler returns the server, and the keys of ann and bob.
func newHandler(opts memory.Options) (_ http.Handler, keys map[string]string, err error) {
	limiter, err := memory.New(opts)
	if err != nil {
		return nil, nil, err
	}
	auth, keys, err := demo.NewKeys(nil, map[string]*ratelimit.Plan{"ann": free, "bob": pro})
	if err != nil {
		return nil, nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "demo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "ask", Description: "Answers a question."}, ask)
	mcp.AddTool(server, &mcp.Tool{Name: "time", Description: "Tells the time."}, tellTime)
	server.AddReceivingMiddleware(limited(limiter))
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	toSDK := sdkauth.RequireBearerToken(principalOf, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	return auth.Protect(toSDK(handler)), keys, nil
}

// principalOf gives the SDK the principal that Protect has found.
func principalOf(_ context.Context, _ string, r *http.Request) (*sdkauth.TokenInfo, error) {
	p, _ := bearer.FromContext[apikey.Principal](r.Context())
	return &sdkauth.TokenInfo{UserID: p.Subject, Extra: map[string]any{"principal": p}}, nil
}

// limited charges each call of a tool, and settles the charge if the result says what it has
// cost. A call that fails stays charged, and other methods cost nothing.
func limited(limiter *memory.Limiter) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			p := call.Extra.TokenInfo.Extra["principal"].(apikey.Principal)
			d, err := limiter.Take(ctx, p.Subject, p.Plan, cmp.Or(costs[call.Params.Name], 1))
			if err == nil {
				d.CountsUnits = true
				err = limit.Denial(ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, &d)
			}
			if err != nil {
				return nil, refusal(err)
			}
			result, err := next(ctx, method, req)
			if r, ok := result.(*mcp.CallToolResult); err == nil && ok && r.Meta["units"] != nil {
				settled := limiter.Adjust(context.WithoutCancel(ctx), p.Subject, &d, r.Meta["units"].(int64), rand.Text())
				if settled != nil {
					log.Printf("the charge of %s is not settled: %v", p.Subject, settled)
				}
			}
			return result, err
		}
	}
}

// refusal returns the error that a client gets. It says how long to wait, in its text for the
// agent and in its data for the program.
func refusal(err error) error {
	denial, ok := errors.AsType[*apierror.Error](err)
	if !ok { // no decision
		log.Print(err)
		denial = &apierror.Error{Status: 503, Code: "unavailable", Message: "The rate limit cannot be checked at the moment.", RetryAfter: time.Second}
	}
	seconds := int64(denial.RetryAfter / time.Second)
	data, _ := json.Marshal(struct {
		Code              apierror.Code `json:"code"`
		RetryAfterSeconds int64         `json:"retryAfterSeconds,omitzero"` // not if the plan is suspended
	}{denial.Code, seconds})
	text := strings.Replace(denial.Message, "as long as Retry-After says", fmt.Sprintf("%d s", seconds), 1)
	return &jsonrpc.Error{Code: int64(denial.Status), Message: text, Data: data} // wrapped, it would lose its data
}

// ask stands for a language model: a word costs a unit. As the type of the output, string would
// make a schema that clients of the TypeScript SDK reject: they accept objects only.
func ask(_ context.Context, _ *mcp.CallToolRequest, q struct{ Text string }) (*mcp.CallToolResult, any, error) {
	answer := "I do not know " + q.Text + "."
	units := int64(len(strings.Fields(q.Text)) + len(strings.Fields(answer)))
	return &mcp.CallToolResult{Meta: mcp.Meta{"units": units}, Content: content(answer)}, nil, nil
}

func tellTime(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: content(time.Now().Format(time.TimeOnly))}, nil, nil
}

func content(text string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: text}} }
