package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"
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
		if err != nil {
			t.Fatal(err)
		}
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
