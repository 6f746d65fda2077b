package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// handlerTransport calls a handler without a network, in the time of the test.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r.RemoteAddr = "192.0.2.1:4711"
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		handler, key, err := newHandler()
		testcheck.NoError(t, err)
		client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
			&http.Client{Transport: handlerTransport{handler}}, "http://api.example.com/hello.v1.Hello/Say")
		for _, c := range []struct {
			key, name, want string
			code            connect.Code
		}{
			{"", "bob", "", connect.CodeUnauthenticated},
			{key, "bob", "hello bob, from ann", 0},
			{key, "", "", connect.CodeInvalidArgument},
			{key, "bob", "", connect.CodeResourceExhausted},
		} {
			ctx, info := connect.NewClientContext(context.Background())
			if c.key != "" {
				info.RequestHeader().Set("Authorization", "Bearer "+c.key)
			}
			resp, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String(c.name)))
			e, _ := errors.AsType[*connect.Error](err)
			switch {
			case c.code == 0 && (err != nil || resp.Msg.Value != c.want):
				t.Errorf("answered %v, %v", resp, err)
			case c.code != 0 && (e == nil || e.Code() != c.code):
				t.Errorf("%v, want %v", err, c.code)
			case c.code == connect.CodeResourceExhausted:
				for _, d := range e.Details() {
					v, _ := d.Value()
					if info, ok := v.(*errdetails.RetryInfo); ok && info.RetryDelay.AsDuration().String() != "1m0s" {
						t.Errorf("retry in %v", info.RetryDelay.AsDuration())
					}
				}
				if e.Meta().Get("Retry-After") != "60" {
					t.Errorf("header %v", e.Meta())
				}
			}
		}
	})
}

// A client of the Connect protocol waits as the server asks, by package transport, and
// learns of a ban.
func TestTransportWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		handler, key, err := newHandler()
		testcheck.NoError(t, err)
		limits, err := transport.New(transport.Options{Base: handlerTransport{handler}})
		testcheck.NoError(t, err)
		client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
			&http.Client{Transport: limits}, "http://api.example.com/hello.v1.Hello/Say")
		begin := time.Now()
		for n := range 3 {
			ctx, info := connect.NewClientContext(context.Background())
			info.RequestHeader().Set("Authorization", "Bearer "+key)
			if _, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("bob"))); err != nil {
				t.Errorf("call %d: %v", n+1, err)
			}
		}
		if waited := time.Since(begin); waited < time.Minute || waited > 66*time.Second {
			t.Errorf("three calls took %v, want the rest of a minute and a tenth at most", waited)
		}

		impatient := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
			&http.Client{Transport: handlerTransport{handler}}, "http://api.example.com/hello.v1.Hello/Say")
		for range 20 {
			ctx, info := connect.NewClientContext(context.Background())
			info.RequestHeader().Set("Authorization", "Bearer "+key)
			_, _ = impatient.CallUnary(ctx, connect.NewRequest(wrapperspb.String("bob")))
			time.Sleep(time.Second)
		}
		ctx, info := connect.NewClientContext(context.Background())
		info.RequestHeader().Set("Authorization", "Bearer "+key)
		_, err = client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("bob")))
		if limit, ok := errors.AsType[*transport.LimitError](err); !ok || !limit.Banned {
			t.Errorf("during a ban: %v, want a LimitError that says so", err)
		}
	})
}

// A gRPC client with a retry policy gets a refusal immediately: connect-go sends it in two
// blocks of headers, after which such a client does not retry.
func TestRetryPolicyDoesNotRetry(t *testing.T) {
	handler, key, err := newHandler()
	testcheck.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	conn, err := grpc.NewClient(server.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	testcheck.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+key), 10*time.Second)
	defer cancel()
	for range 5 { // two a minute, and the minute can end meanwhile
		err = conn.Invoke(ctx, "/hello.v1.Hello/Say", wrapperspb.String("bob"), new(wrapperspb.StringValue))
		if err != nil {
			break
		}
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v, want RESOURCE_EXHAUSTED immediately", err)
	}
}
