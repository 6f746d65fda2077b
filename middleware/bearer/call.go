package bearer

import (
	"context"
	"net/http"
	"net/url"

	"github.com/animalstore/gatehouse/apierror"
)

// IdentifyCall is Identify for a call that interceptors see, such as one of gRPC or
// Connect: packages gatehousegrpc and gatehouseconnect call it. It returns ctx with what
// it found in the values of authorization in the call's metadata.
//
// Options.Observe gets a request that has the context, the method as the path of its
// URL, such as "/pets.v1.Pets/Get", and no other field than Authorization.
func (a *Authenticator[P]) IdentifyCall(ctx context.Context, method string, authorization []string) context.Context {
	id := a.identify(ctx, authorization)
	if a.observe != nil && id.outcome != Authenticated {
		r := &http.Request{
			Method: http.MethodPost, URL: &url.URL{Path: method},
			Proto: "HTTP/2.0", ProtoMajor: 2,
			Header: http.Header{"Authorization": authorization},
		}
		a.observe(r.WithContext(ctx), id.outcome, id.reason)
	}
	return id
}

// RequireCall is Require for a call: it returns nil if IdentifyCall or Identify of the
// same Authenticator has found a principal in it. Otherwise it returns the error to
// answer with and its header fields, and logs what Require logs.
func (a *Authenticator[P]) RequireCall(ctx context.Context, method string) (http.Header, *apierror.Error) {
	field, value, err := a.refusal(ctx)
	if err == nil {
		return nil, nil
	}
	fields := make(http.Header, 1)
	if field != "" {
		fields[field] = value
	}
	return fields, a.responder.Public((&http.Request{Method: http.MethodPost, Pattern: method}).WithContext(ctx), err)
}
