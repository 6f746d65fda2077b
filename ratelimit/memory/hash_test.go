package memory

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/race"
)

// Strings that differ by little, in bytes and in length, are what a weak hash
// confuses.
func TestHashKeepsSubjectsApart(t *testing.T) {
	race.Skip(t)
	for range 3 {
		k := newHashKey(nil)
		seen := map[uint64]string{}
		add := func(s string) {
			h := k.sum(s)
			if other, there := seen[h]; there && other != s {
				t.Fatalf("%q and %q have one hash", s, other)
			}
			seen[h] = s
		}
		var all func(prefix string, alphabet string, left int)
		all = func(prefix, alphabet string, left int) {
			add(prefix)
			if left > 0 {
				for i := range len(alphabet) {
					all(prefix+alphabet[i:i+1], alphabet, left-1)
				}
			}
		}
		all("", "\x00\x01", 16)
		all("", "`abc", 8)
		all("", "0123456789", 5)
		for n := range 200 {
			add(strings.Repeat("\x00", n))
			add(strings.Repeat("a", n))
		}
		for i := range 50_000 {
			add(fmt.Sprint("owner:", i))
			add(fmt.Sprintf("network:2001:db8:%x:%x::/64", i>>8, i&255))
			add(fmt.Sprintf("a name that is longer than one step of the hash, with a number %08d in it", i))
		}
	}
}

// Each bit of the input decides each bit of the hash, half of the time.
func TestHashSpreads(t *testing.T) {
	k := newHashKey(nil)
	for _, size := range []int{1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 45, 64, 65, 100} {
		const rounds = 2000
		var flips [64]int
		for range rounds {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(rand.Uint32())
			}
			h := k.sum(string(b))
			b[rand.IntN(size)] ^= 1 << rand.IntN(8)
			diff := h ^ k.sum(string(b))
			for diff != 0 {
				flips[bits.TrailingZeros64(diff)]++
				diff &= diff - 1
			}
		}
		for bit, n := range flips[1:] { // bit 0 tells accounts from records
			if n < rounds*40/100 || n > rounds*60/100 {
				t.Errorf("%d bytes: bit %d changed in %d of %d cases, want about half", size, bit+1, n, rounds)
			}
		}
	}
}

func TestHashKeyDecides(t *testing.T) {
	a, b := newHashKey(nil), newHashKey(nil)
	if a.sum("subject") == b.sum("subject") {
		t.Error("two keys give one hash")
	}
	l, err := New(Options{})
	must(t, err)
	if again := newHashKey(l.Secret()); again != l.key {
		t.Error("the secret does not make the key it was made of")
	}
}
