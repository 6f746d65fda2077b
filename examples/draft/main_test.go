package main

import (
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/readme"
)

func TestReadme(t *testing.T) { readme.Server(t, newHandler) }
