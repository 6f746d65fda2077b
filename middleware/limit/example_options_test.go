package limit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A handler limits by what it finds in the body, here a number that gets a code. It writes
// the header fields and the answer that the middleware would write.
func ExampleDenial() {
	plan := ratelimit.MustPlan("codes", ratelimit.Penalty{}, ratelimit.PerDay(2))
	limiter := must(memory.New(noon))
	errs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)} // nil: slog.Default
	handler := errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		phone := r.PostFormValue("phone")
		if phone == "" {
			return apierror.New(http.StatusBadRequest, "missing_phone", "Send a form with phone.")
		}
		d, err := limiter.Take(r.Context(), "phone:"+phone, plan, 1)
		if err != nil {
			return err // not decided: answered with 500, and the code is not sent
		}
		limit.XRateLimit.Set(w.Header(), &d)
		if err := limit.Denial(ratelimit.Caller{}, &d); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, "sent")
		return err
	})
	for range 3 {
		r := httptest.NewRequest("POST", "/codes", strings.NewReader(url.Values{"phone": {"+49 30 1"}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"), w.Header().Get("Retry-After"), strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 1  sent
	// 200 0  sent
	// 429 0 43200 {"code":"rate_limit_exceeded","message":"You have reached the limit of 2 requests per day. Wait as long as Retry-After says.","status":429}
}

// Failed sign-ins alone are limited: three wrong passwords for a user in an hour.
func ExampleOptions_chargeIf() {
	plan := ratelimit.MustPlan("sign-in", ratelimit.Penalty{}, ratelimit.PerHour(3))
	limiter := must(memory.New(noon))
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "sign-in:" + r.FormValue("user"), Plan: plan}, nil
	}, limit.Options{
		ChargeIf: func(_ *http.Request, status int) bool { return status == http.StatusUnauthorized },
	}))
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

// A service answers in its own form and in the client's language, here all errors alike.
func ExampleOptions_errors() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
	errs := &apierror.Responder{
		Translate: func(r *http.Request, e *apierror.Error) string {
			if e.Code == "rate_limit_exceeded" && strings.HasPrefix(r.Header.Get("Accept-Language"), "de") {
				return fmt.Sprintf("Mehr als %v Anfragen sind nicht erlaubt.", e.Args["limit"])
			}
			return "" // as it is
		},
		Write: func(w http.ResponseWriter, r *http.Request, e *apierror.Error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(e.Status)
			fmt.Fprintf(w, "{\"error\":%q}\n", e.Message)
		},
	}
	identify := func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}
	limited := must(limit.New(must(memory.New(noon)), identify, limit.Options{Errors: errs}))
	api := limited(http.HandlerFunc(hello))
	for range 2 {
		r := httptest.NewRequest("GET", "/notes", nil)
		r.Header.Set("Accept-Language", "de-CH, en;q=0.5")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Header().Get("Retry-After"), " ", w.Body)
	}
	// Output:
	// 200  hello
	// 429 60 {"error":"Mehr als 1 Anfragen sind nicht erlaubt."}
}

// The header fields of the IETF draft show every quota of the plan.
func ExampleHeaderSet() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	limiter := must(memory.New(noon))
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}, limit.Options{
		Headers: limit.DraftRateLimit, // with limit.XRateLimit|limit.DraftRateLimit both
	}))
	w := httptest.NewRecorder()
	limited(http.HandlerFunc(hello)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println("RateLimit-Policy:", w.Header().Get("RateLimit-Policy"))
	fmt.Println("RateLimit:", w.Header().Get("RateLimit"))
	// Output:
	// RateLimit-Policy: "minute";q=60;w=60, "day";q=1000;w=86400
	// RateLimit: "minute";r=59;t=60, "day";r=999;t=43200
}

// The tokens of an answer are known only when it is written. Each request reserves what
// it is likely to need, and is settled to what it has used: the last one that is admitted may
// go beyond the limit.
func ExampleSettlement_Settle() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(10_000))
	limiter := must(memory.New(noon))
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:17", Plan: plan}, nil
	}, limit.Options{
		Cost:   func(*http.Request) int64 { return 1000 },
		Settle: true,
	}))
	used := map[string]int64{"/short": 20, "/long": 12_000}
	api := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "the answer")
		err := limit.FromContext(r.Context()).Settle(r.Context(), used[r.URL.Path])
		if err != nil {
			fmt.Println("not settled:", err)
		}
	}))
	show(api, "/short")
	show(api, "/long")
	show(api, "/short")
	d := must(limiter.Peek(context.Background(), "user:17", plan))
	fmt.Println("left:", d.Remaining())
	// Output:
	// /short: 200, remaining "9000"
	// /long: 200, remaining "8980"
	// /short: 429, remaining "0"
	// left: 0
}
