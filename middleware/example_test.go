package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
)

func Example() {
	rs := &apierror.Responder{RequestID: middleware.RequestIDFrom}

	mux := http.NewServeMux()
	mux.Handle("POST /v1/pets", rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err // 413 if the body is too long
		}
		_, err = fmt.Fprintf(w, "%d bytes, request %s", len(body), middleware.RequestIDFrom(r.Context()))
		return err
	}))
	handler := middleware.Chain(rs.Mux(mux),
		middleware.RequestID,
		rs.Recover,
		middleware.SecurityHeaders,
		middleware.TargetLimit(8<<10, rs),
		middleware.BodyLimit(20, rs),
	)

	for _, body := range []string{`{"name":"Rex"}`, `{"name":"Bucephalus"}`} {
		r := httptest.NewRequest("POST", "/v1/pets", strings.NewReader(body))
		r.Header.Set("X-Request-ID", "example-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 14 bytes, request example-1
	// 413 {"code":"body_too_large","message":"The request body is larger than 20 bytes.","status":413}
}
