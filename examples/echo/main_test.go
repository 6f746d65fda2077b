package main

import (
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
)

func TestEcho(t *testing.T) { script.CheckGate(t, newRouter, "/pets/:id") }
