// Package apierror writes every error of an HTTP API in one envelope:
//
//	{"code":"pet_not_found","message":"There is no pet with this identifier.","status":404}
//
// Handlers return errors, and one [Responder] writes them:
//
//	var rs apierror.Responder // the zero value works
//
//	var errNoPet = apierror.New(http.StatusNotFound, "pet_not_found", "There is no pet with this identifier.")
//
//	mux := http.NewServeMux()
//	mux.Handle("GET /v1/pets/{petId}", rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
//		pet, ok := pets[r.PathValue("petId")]
//		if !ok {
//			return errNoPet // sent to the client; an error of another type is logged and sent as "internal"
//		}
//		return json.NewEncoder(w).Encode(pet)
//	}))
//	http.ListenAndServe(addr, rs.Recover(rs.Mux(mux)))
//
// Only an [Error] has public text. [errors.As] finds it in what a handler returns,
// so it may be wrapped or joined; the text around it goes only to the log. An error
// without an Error inside is private as a whole: it is logged, and the client gets
// status 500 with the code "internal".
//
// A client that prefers application/problem+json in Accept gets the same error
// as problem details (RFC 9457):
//
//	{"type":"about:blank","title":"Bad Request","status":400,"detail":"The body breaks its schema.",
//	 "code":"invalid_body","errors":[{"pointer":"/name","detail":"is required"}]}
//
// [Code] lists the codes, and [Responder] says what is sent and what is logged.
package apierror
