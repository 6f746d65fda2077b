package main

import (
	"context"
	"net/http"
)

// What follows stands for the users of a service, and its authentication.

type user struct{ ID, Plan string }

// bob pays; every other user has the plan free.
func lookup(name string) user {
	if name == "bob" {
		return user{name, "pro"}
	}
	return user{name, "free"}
}

type userKey struct{}

// authenticate puts the user into the context. A real service checks a password.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, _ := r.BasicAuth(); name != "" {
			r = r.WithContext(context.WithValue(r.Context(), userKey{}, lookup(name)))
		}
		next.ServeHTTP(w, r)
	})
}

// userOf returns the user that sent the request; the zero user is a guest.
func userOf(r *http.Request) user {
	u, _ := r.Context().Value(userKey{}).(user)
	return u
}
