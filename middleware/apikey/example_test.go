package apikey_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// keyTable stands for a database.
type keyTable map[apikey.Digest]apikey.Record[apikey.Principal]

func (t keyTable) Lookup(_ context.Context, d apikey.Digest) (apikey.Record[apikey.Principal], error) {
	record, ok := t[d]
	if !ok {
		return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
	}
	return record, nil
}

func Example() {
	format, err := apikey.NewFormat("pet_live_")
	if err != nil {
		fmt.Println(err)
		return
	}

	// Issue a key. What is stored does not tell what it is.
	secret := format.Generate()
	store := keyTable{
		secret.Digest(): {
			Principal: apikey.Principal{
				KeyID: apikey.NewKeyID(),
				Owner: "ann",
				Plan:  ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.Quota{Limit: 60, Window: time.Minute}),
			},
			Expires: time.Now().Add(30 * 24 * time.Hour),
		},
	}
	fmt.Println("logged as", secret)

	// Verify keys that come with requests.
	verifier, err := apikey.NewVerifier(format, store, apikey.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	principal, err := verifier.Verify(context.Background(), secret.Reveal())
	fmt.Println(principal.Owner, principal.Plan.Name(), err)

	_, err = verifier.Verify(context.Background(), format.Generate().Reveal())
	fmt.Println(err, errors.Is(err, bearer.ErrInvalid))
	// Output:
	// logged as [redacted]
	// ann free <nil>
	// apikey: key is unknown: bearer: token not valid true
}

// Live and test keys are in one store, and the principal says which kind a key is.
func ExampleOptions_moreFormats() {
	live := must(apikey.NewFormat("pet_live_"))
	test := must(apikey.NewFormat("pet_test_"))
	secret := test.Generate()
	store := keyTable{secret.Digest(): {Principal: apikey.Principal{Owner: "ann"}}}

	verifier := must(apikey.NewVerifier(live, store, apikey.Options{MoreFormats: []*apikey.Format{test}}))
	principal, err := verifier.Verify(context.Background(), secret.Reveal())
	fmt.Println(principal.Owner, principal.Prefix, err)
	// Output:
	// ann pet_test_ <nil>
}

// A service with keys of its own making stores their digests, and has the cache too. A network
// that guesses is refused before the store is asked.
func ExampleNewVerifier_anyFormat() {
	store := keyTable{apikey.DigestOf("tok-17.x"): {Principal: apikey.Principal{Owner: "ann"}}}
	guesses := ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.PerDay(2)) // the default is 60/minute
	verifier := must(apikey.NewVerifier(nil, store, apikey.Options{Guesses: guesses}))
	auth := must(bearer.New("pets", verifier.Verify, bearer.Options{}))
	handler := auth.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	for _, key := range []string{"tok-17.x", "guess1", "guess2", "guess3", "tok-17.x"} {
		r := httptest.NewRequest("GET", "/v1/pets", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(key, w.Code)
	}
	// Output:
	// tok-17.x 200
	// guess1 401
	// guess2 401
	// guess3 429
	// tok-17.x 200
}

// Account is the principal of a service with scopes.
type Account struct {
	apikey.Principal
	Scopes []string
}

func (a Account) may(scope string) bool { return slices.Contains(a.Scopes, scope) }

// accounts stands for a database.
type accounts map[apikey.Digest]Account

func (t accounts) Lookup(_ context.Context, d apikey.Digest) (apikey.Record[Account], error) {
	account, ok := t[d]
	if !ok {
		return apikey.Record[Account]{}, apikey.ErrUnknown
	}
	return apikey.Record[Account]{Principal: account}, nil
}

// A principal can be of the service's own type. Scopes are then found with the key, and
// cached like it.
func ExampleNewVerifier_ownPrincipal() {
	format := must(apikey.NewFormat("pet_live_"))
	secret := format.Generate()
	store := accounts{secret.Digest(): {Principal: apikey.Principal{Owner: "ann"}, Scopes: []string{"pets:read"}}}

	verifier := must(apikey.NewVerifier(format, store, apikey.Options{}))
	auth := must(bearer.New("pets", verifier.Verify, bearer.Options{}))
	handler := auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account, _ := bearer.FromContext[Account](r.Context())
		fmt.Println(account.Subject, account.may("pets:read"), account.may("pets:write"))
	}))

	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer "+secret.Reveal())
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// owner:ann true false
}

// The digits at the end are a checksum, so that most mistakes need no look-up.
func ExampleFormat_Check() {
	format := must(apikey.NewFormat("pet_live_"))
	fmt.Println(format.Check("pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P44UjKO"))
	fmt.Println(format.Check("pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0Q44UjKO"))
	// Output:
	// true
	// false
}

// A digest can be an argument of a statement and the destination of a column as it is:
//
//	db.ExecContext(ctx, `INSERT INTO api_keys (digest, owner) VALUES (?, ?)`, secret.Digest(), "ann")
//	row.Scan(&digest, &owner)
//
// database/sql then calls Value and Scan.
func ExampleDigest_Scan() {
	digest := apikey.DigestOf("pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P44UjKO")
	stored, err := digest.Value()
	fmt.Printf("%T %v\n", stored, err)

	var read apikey.Digest
	fmt.Println(read.Scan(stored), read == digest)
	fmt.Println(read.Scan(fmt.Sprintf("%x", digest)), read == digest) // from a column of text
	// Output:
	// []uint8 <nil>
	// <nil> true
	// <nil> true
}

// When a key is rotated, the old one goes on working for a while, but never
// longer than it would have.
func ExampleRecord_ExpireAfter() {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	forever := apikey.Record[apikey.Principal]{}
	ending := apikey.Record[apikey.Principal]{Expires: now.Add(time.Hour)}

	fmt.Println(forever.ExpireAfter(now, 24*time.Hour).Expires)
	fmt.Println(ending.ExpireAfter(now, 24*time.Hour).Expires)
	// Output:
	// 2026-11-21 12:00:00 +0000 UTC
	// 2026-11-20 13:00:00 +0000 UTC
}
