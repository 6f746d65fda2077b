// Package rpclimit decides calls of RPC frameworks as the middleware of package
// ratelimit decides requests. Packages gatehousegrpc and gatehouseconnect carry its
// answers in the form of their framework:
//
//	gate, err := rpclimit.New("gatehousegrpc", engine, true, rpclimit.Options{}, native)
//	caller, err := identify(ctx, method)
//	call := gate.Open(ctx, method, caller, err)
//	if call.Denial != nil { ... }     // refuse the call
//	defer call.Finish(ctx, code, err) // after the handler: refunds and Options.ChargeIf
package rpclimit
