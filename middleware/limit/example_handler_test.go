package limit_test

import (
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
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	errs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)} // nil: slog.Default
	handler := errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		phone := r.PostFormValue("phone")
		if phone == "" {
			return apierror.New(http.StatusBadRequest, "missing_phone", "Send a form with phone.")
		}
		d, err := engine.Take(r.Context(), "phone:"+phone, plan, 1)
		if err != nil {
			return err // not decided: answered with 500, and the code is not sent
		}
		limit.XRateLimit.Set(w.Header(), &d)
		if !d.Allowed() {
			return limit.Denial(ratelimit.Caller{}, &d)
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
