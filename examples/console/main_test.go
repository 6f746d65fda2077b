package main

import (
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
)

func TestScript(t *testing.T) { script.Run(t, newHandler) }
