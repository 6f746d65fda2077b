package main

import (
	"context"
	"net/http"
)

// What follows stands for the users of a service, and its authentication.

type userKey struct{}

// authenticate puts the user into the context. A real service checks a password.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// userOf returns the user that sent the request, or "".
func userOf(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

func isPro(user string) bool { return user == "bob" }
