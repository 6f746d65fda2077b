package main

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
)

func TestScript(t *testing.T) {
	format := testcheck.Must(apikey.NewFormat("demo_"))
	store := keys{}
	key := store.issue(format, free)
	script.Run(t, func() (http.Handler, error) { return newHandler(format, store) }, "KEY="+key)
}
