package limit_test

import (
	"net/http"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Failed sign-ins alone are limited: three wrong passwords for a user in an hour.
func ExampleOptions_chargeIf() {
	plan := ratelimit.MustPlan("sign-in", ratelimit.Penalty{}, ratelimit.PerHour(3))
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "sign-in:" + r.FormValue("user"), Plan: plan}, nil
	}, limit.Options{
		ChargeIf: func(_ *http.Request, status int) bool { return status == http.StatusUnauthorized },
	})
	if err != nil {
		panic(err)
	}
	signIn := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "mellon" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	show(signIn, "/?user=ann&password=mellon")
	show(signIn, "/?user=ann&password=friend")
	show(signIn, "/?user=ann&password=enter")
	show(signIn, "/?user=ann&password=mellon")
	show(signIn, "/?user=ann&password=speak")
	show(signIn, "/?user=ann&password=mellon")
	// Output:
	// /?user=ann&password=mellon: 200, remaining "2"
	// /?user=ann&password=friend: 401, remaining "2"
	// /?user=ann&password=enter: 401, remaining "1"
	// /?user=ann&password=mellon: 200, remaining "0"
	// /?user=ann&password=speak: 401, remaining "0"
	// /?user=ann&password=mellon: 429, remaining "0"
}
