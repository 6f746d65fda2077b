// Signin is a service that limits failed sign-ins, by network and by account name
// together. Sign-ins that succeed are not counted.
//
//	go run ./examples/signin
//	for i in 1 2 3 4; do curl -d 'name=ann&password=12345' http://127.0.0.1:8081/signin; done
//
// Each sign-in is charged first, and one that succeeds gets it back, so that concurrent
// guesses cannot exceed the limit. Guesses of others can use up the limit of an account, and
// its owner then has to wait too: keep that window short, and never ban an account. Hashing
// takes time; package middleware/inflight limits how much of it runs at once.
package main

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The plans. A ban of an account would lock its owner out, so that only networks are
// banned.
var (
	perNetwork = ratelimit.MustPlan("network", ratelimit.DefaultPenalty(), ratelimit.PerHour(10))
	perAccount = ratelimit.MustPlan("account", ratelimit.Penalty{}, ratelimit.Quota{Limit: 3, Window: 15 * time.Minute})
)

var (
	errMissing = apierror.New(http.StatusBadRequest, "missing_name", "Send a form with name and password.")
	errFailed  = apierror.New(http.StatusUnauthorized, "sign_in_failed", "The name or the password is wrong.")
)

func main() { demo.Serve(newHandler()) }

func newHandler() (http.Handler, error) {
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(limiter, identify, limit.Options{
		ChargeIf: func(_ *http.Request, status int) bool { return status == http.StatusUnauthorized },
		Headers:  limit.NoHeaders, // they would say how often others have tried the name
	})
	if err != nil {
		return nil, err
	}
	errs := &apierror.Responder{}
	mux := http.NewServeMux()
	mux.Handle("POST /signin", middleware.Chain(errs.Handle(signIn), middleware.BodyLimit(4<<10, errs), limited))
	return errs.Mux(mux), nil
}

// identify reads the form, which ParseForm keeps for the handler.
func identify(r *http.Request) (ratelimit.Caller, error) {
	if err := r.ParseForm(); err != nil {
		return ratelimit.Caller{}, errMissing.Wrap(err)
	}
	name := r.PostForm.Get("name")
	if name == "" {
		return ratelimit.Caller{}, errMissing
	}
	network := clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r)) // behind a proxy: clientip.FromXForwardedFor
	return ratelimit.Caller{
		Subject: "signin:" + network, Plan: perNetwork,
		// Names that no account has are counted too, spelled as the accounts are.
		Also: []ratelimit.Charge{{Subject: "signin:account:" + strings.ToLower(name), Plan: perAccount}},
	}, nil
}

// accounts has the hashes of passwords. Each real account has a salt of its own.
var accounts = map[string][]byte{"ann": hash("correct horse")}

func signIn(w http.ResponseWriter, r *http.Request) error {
	sent := hash(r.PostForm.Get("password")) // also without an account: the time says nothing
	name := strings.ToLower(r.PostForm.Get("name"))
	if subtle.ConstantTimeCompare(sent, accounts[name]) == 0 {
		return errFailed
	}
	_, err := fmt.Fprintf(w, "hello, %s\n", name)
	return err
}

func hash(password string) []byte {
	key, err := pbkdf2.Key(sha256.New, password, []byte("salt"), 100_000, sha256.Size)
	if err != nil {
		panic(err) // only for lengths that nothing here has
	}
	return key
}
