package bearer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/animalstore/gatehouse/middleware/bearer"
)

// A whole service behind bearer tokens.
func Example() {
	users := map[string]string{"token-of-ann": "ann"}

	auth, err := bearer.New("pets", func(ctx context.Context, token string) (string, error) {
		name, ok := users[token]
		if !ok {
			return "", fmt.Errorf("no such token: %w", bearer.ErrInvalid)
		}
		return name, nil
	}, bearer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := bearer.FromContext[string](r.Context())
		fmt.Fprintf(w, "hello, %s\n", name)
	})))
	defer srv.Close()

	for _, authorization := range []string{"Bearer token-of-ann", "Bearer guessed", ""} {
		req, _ := http.NewRequest("GET", srv.URL, nil)
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%d %q\n%s", resp.StatusCode, resp.Header.Get("WWW-Authenticate"), body)
	}
	// Output:
	// 200 ""
	// hello, ann
	// 401 "Bearer realm=\"pets\", error=\"invalid_token\", error_description=\"The API key is not valid\""
	// {"code":"invalid_api_key","message":"The API key is not valid.","status":401}
	// 401 "Bearer realm=\"pets\""
	// {"code":"missing_api_key","message":"No API key was sent. Send it as Authorization: Bearer <API key>.","status":401}
}

// What stands between the two halves, such as a rate limiter, sees every request
// with its outcome.
func ExampleAuthenticator_Identify() {
	auth, err := bearer.New("pets", func(ctx context.Context, token string) (string, error) {
		return "", bearer.ErrInvalid
	}, bearer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	count := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println(bearer.OutcomeFrom(r.Context()))
			next.ServeHTTP(w, r)
		})
	}
	handler := auth.Identify(count(auth.Require(http.NotFoundHandler())))

	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer guessed")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output:
	// invalid
	// 401
}
