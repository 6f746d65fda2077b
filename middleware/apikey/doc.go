// Package apikey makes, stores and verifies API keys such as
//
//	pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P44UjKO
//
// which are a prefix, 30 random characters (178 bits), and 6 characters of
// checksum. The prefix says whose key it is and what kind of key; the checksum
// turns typing errors and garbage away before any look-up, and lets a scanner
// that finds a leaked key be sure that it is one. The checksum is public, and is
// no protection against anybody.
//
// # Issuing
//
// A service stores the digest of a key, and shows the key once:
//
//	format, err := apikey.NewFormat("pet_live_")
//	secret := format.Generate()
//	store.Insert(apikey.NewKeyID(), secret.Digest(), secret.LastFour(), ...)
//	fmt.Println(secret.Reveal())
//
// A [Secret] prints as "[redacted]" whatever it is printed with. A [Digest] is a
// plain SHA-256: a key has too many bits to be guessed, so the slow hashes that
// passwords need would only slow down the service. The store looks a key up by
// its digest and may compare digests in any way, since nobody can choose a key by
// its digest.
//
// # Verifying
//
// A [Verifier] tells whom a key belongs to, by a [Store] and a cache in front of
// it. Its Verify method is what package bearer asks for:
//
//	verifier, err := apikey.NewVerifier(format, store, apikey.Options{})
//	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{})
//
// What the store says is remembered for one second at most, so a revocation and
// a new key act within a second on every replica, with no message between them.
// The instants of expiry and revocation that a [Record] states are honoured
// exactly, also by the cache.
package apikey
