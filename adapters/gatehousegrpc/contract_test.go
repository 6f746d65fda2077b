package gatehousegrpc_test

import (
	"context"
	"net/http"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
)

// recoverUnary and recoverStream answer a panic, as a service does outside of the limit.
func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
	defer recovered(&err)
	return h(ctx, req)
}

func recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return h(srv, ss)
}

func recovered(err *error) {
	if recover() != nil {
		*err = status.Error(codes.Internal, "recovered")
	}
}

// options returns the options of a limit.
func options(l contract.Limit) gatehousegrpc.Options {
	o := gatehousegrpc.Options{Options: l.Options}
	if l.Refund {
		o.ChargeIf = gatehousegrpc.NotServerError
	}
	return o
}

func TestLimits(t *testing.T) {
	var all []contract.Service
	for name, send := range map[string]caller{"unary": call, "stream": stream} {
		all = append(all, contract.Service{Name: name, RPC: true, Native: status.Error(codes.Unauthenticated, "sign in"), Start: send.start})
	}
	contract.TestLimits(t, all...)
}

type caller func(context.Context, *grpc.ClientConn, string) answer

// start is part of contract.Service.
func (send caller) start(t *testing.T, chain contract.Chain) func(contract.Request) contract.Answer {
	server := interceptors(recoverUnary, recoverStream)
	if chain.Auth != nil {
		server = append(server, interceptors(gatehousegrpc.Identify(chain.Auth))...)
	}
	for _, l := range chain.Limits {
		server = append(server, limited(t, l.Engine, l.Identify, options(l))...)
	}
	if chain.Auth != nil {
		server = append(server, interceptors(gatehousegrpc.Require(chain.Auth))...)
	}
	conn := start(t, func(ctx context.Context, text string) (string, error) {
		return text, withCode(contract.Code(chain.Handle(ctx, text)))
	}, server...)
	return func(r contract.Request) contract.Answer {
		a := send(metadata.NewOutgoingContext(t.Context(), metadata.MD{"authorization": r.Authorization}), conn, r.Text)
		header := make(http.Header)
		for name, values := range metadata.Join(a.header, a.trailer) {
			header[http.CanonicalHeaderKey(name)] = values
		}
		return contract.Refused(uint32(a.status.Code()), a.reason(), a.status.Message(), header, a.retryDelay())
	}
}

func withCode(code uint32) error { return status.Error(codes.Code(code), "of the handler") }

// ended calls Done at the end of each call, also of one that reaches no interceptor.
type ended struct{ contract.Kinds }

func (ended) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (ended) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (ended) HandleConn(context.Context, stats.ConnStats)                       {}

func (e ended) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.End); ok {
		e.Done()
	}
}

func TestCharges(t *testing.T) {
	contract.TestCharges(t, contract.Kind{Protocols: []string{"grpc"}, WithCode: withCode, Start: func(t *testing.T, k contract.Kinds) string {
		opts := options(k.Limit)
		opts.ChargeIf = gatehousegrpc.NotServerError
		if k.Never {
			opts.ChargeIf = func(*http.Request, error) bool { return false }
		}
		server := append(interceptors(recoverUnary, recoverStream), limited(t, k.Engine, k.Identify, opts)...)
		return "http://" + serve(t, k.Handle, append(server, grpc.StatsHandler(ended{k}))...)
	}})
}
