package main

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

func TestScript(t *testing.T) { script.Run(t, newHandler) }

// A question that is too long is refused also if the client did not say how long it is.
func TestLongQuestion(t *testing.T) {
	handler := testcheck.Must(newHandler())
	r := httptest.NewRequest("POST", "/ask", io.MultiReader(strings.NewReader(strings.Repeat("?", longestQuestion+1))))
	r.SetBasicAuth("ann", "")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != 413 || !strings.Contains(w.Body.String(), "body_too_large") {
		t.Errorf("the answer is %d %q, want 413 body_too_large", w.Code, w.Body)
	}
}
