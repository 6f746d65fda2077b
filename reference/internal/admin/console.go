package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/console"
	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

// registerConsole serves the console at / and its files. They need no token: they are the
// same on every server, and hold no data.
func (a *admin) registerConsole(mux *http.ServeMux) error {
	files, err := console.New()
	if err != nil {
		return err
	}
	for _, f := range files {
		pattern := http.MethodGet + " " + f.Path
		if f.Path == "/" {
			pattern += "{$}"
		}
		mux.Handle(pattern, staticFile(f))
	}
	return nil
}

// staticFile serves a file, which browsers keep and revalidate.
func staticFile(f webpage.File) http.Handler {
	sum := sha256.Sum256(f.Body)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", webpage.Policy)
		h.Set("Content-Type", f.ContentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Body))
	})
}
