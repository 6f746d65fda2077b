package main

import (
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
)

func TestChi(t *testing.T) { script.CheckGate(t, newRouter, "/pets/{id}") }
