package main

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
)

func TestScript(t *testing.T) {
	script.Run(t, func() (http.Handler, error) { return newHandler(), nil })
}
