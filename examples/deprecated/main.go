// Deprecated is a service with one deprecated operation, and a client that reads the fields
// of its responses. The service logs the callers of the operation. From the sunset on it
// answers 410.
//
//	go run ./examples/deprecated
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

func main() {
	server := httptest.NewServer(newHandler(time.Now))
	defer server.Close()
	if err := call(os.Stdout, http.DefaultTransport, server.URL+"/v1/pets/17"); err != nil {
		log.Fatal(err)
	}
}

// newHandler returns the service with the clock now.
func newHandler(now func() time.Time) http.Handler {
	getPet := deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
		Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/v1/pets?status=available",
		OnUse:     func(r *http.Request) { log.Printf("%s still calls %s", r.RemoteAddr, r.Pattern) },
		Now:       now,
	})
	mux := http.NewServeMux()
	mux.Handle("GET /v1/pets/{petId}", getPet.Enforce(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q}`, r.PathValue("petId"))
	})))
	return mux
}

// call gets url and prints what a client can learn about its deprecation.
func call(out io.Writer, transport http.RoundTripper, url string) error {
	client := &http.Client{Transport: transport}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	notice, deprecated, err := deprecation.FromResponse(response)
	if err != nil {
		return fmt.Errorf("reading the deprecation fields of %s: %w", url, err)
	}
	if !deprecated {
		_, err = fmt.Fprintln(out, response.Status, "and not deprecated")
		return err
	}
	_, err = fmt.Fprintf(out, "%s, deprecated since %s, removed on %s, replaced by %s\n", response.Status,
		notice.Since.Format(time.DateOnly), notice.Sunset.Format(time.DateOnly), notice.Successor)
	return err
}
