package main

import (
	"net/http/httptest"
	"testing"
)

func TestHello(t *testing.T) {
	h, err := newHandler()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for range 12 { // a minute may end in the middle, and with it a second quota begins
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		counts[w.Code]++
	}
	if counts[200] != 5 && counts[200] != 10 || counts[200]+counts[429] != 12 {
		t.Errorf("12 requests were answered with %v, want 200 for 5 in a minute and 429 for the rest", counts)
	}
}
