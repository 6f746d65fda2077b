package redislimit_test

import (
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/internal/histories"
)

func TestHistories(t *testing.T) {
	_, c := mini(t)
	for seed := range uint64(4) {
		histories.Check(t, newLimiter(t, c), histories.Options{Seed: seed, Calls: 60})
	}
}
