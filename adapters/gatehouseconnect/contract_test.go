package gatehouseconnect_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
)

// options returns the options of a limit.
func options(l contract.Limit) gatehouseconnect.Options {
	o := gatehouseconnect.Options{Options: l.Options}
	if l.Refund {
		o.ChargeIf = gatehouseconnect.NotServerError
	}
	return o
}

func TestLimits(t *testing.T) {
	var all []contract.Service
	for _, c := range clients(t) {
		all = append(all, contract.Service{Name: c.name, RPC: true, Native: connect.NewError(connect.CodeUnauthenticated, errors.New("sign in")), Start: c.start})
	}
	contract.TestLimits(t, all...)
}

// start is part of contract.Service.
func (c client) start(t *testing.T, chain contract.Chain) func(contract.Request) contract.Answer {
	var all []connect.Interceptor
	if chain.Auth != nil {
		all = append(all, gatehouseconnect.NewIdentify(chain.Auth))
	}
	for _, l := range chain.Limits {
		all = append(all, limited(l.Engine, l.Identify, options(l))...)
	}
	if chain.Auth != nil {
		all = append(all, gatehouseconnect.NewRequire(chain.Auth))
	}
	url := start(t, func(ctx context.Context, text string) (string, error) {
		return text, withCode(contract.Code(chain.Handle(ctx, text)))
	}, all)
	return func(r contract.Request) contract.Answer {
		c.header = http.Header{"Authorization": r.Authorization}
		a := c.send(t.Context(), url, r.Text)
		code, message := uint32(0), ""
		if e, ok := errors.AsType[*connect.Error](a.err); ok {
			code, message = uint32(e.Code()), e.Message()
		}
		return contract.Refused(code, a.reason(), message, a.fields, a.retryDelay())
	}
}

func withCode(code uint32) error {
	if code == 0 {
		return nil
	}
	return connect.NewError(connect.Code(code), errors.New("of the handler"))
}

func TestCharges(t *testing.T) {
	contract.TestCharges(t, contract.Kind{Protocols: []string{"connect", "grpc", "grpc-web"}, WithCode: withCode, Start: func(t *testing.T, k contract.Kinds) string {
		opts := options(k.Limit)
		opts.ChargeIf = gatehouseconnect.NotServerError
		if k.Never {
			opts.ChargeIf = func(*http.Request, error) bool { return false }
		}
		return start(t, k.Handle, limited(k.Engine, k.Identify, opts), func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer k.Done()
				next.ServeHTTP(w, r)
			})
		})
	}})
}
