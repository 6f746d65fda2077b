package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newService returns a service that the gateway forwards requests to. It trusts X-Owner,
// and sets header fields of its own.
func newService(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("X-RateLimit-Limit", "1000000") // clients of the gateway do not get this one
		w.Header().Set("X-Request-Id", "42")           // nor this one
		fmt.Fprintf(w, "%s of %s: %s\n", name, r.Header.Get("X-Owner"), r.URL.Path)
	})
}

// startService serves on a free port.
func startService(name string) *url.URL {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: newService(name), ReadHeaderTimeout: 5 * time.Second}
	go func() { log.Fatal(server.Serve(l)) }()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}
