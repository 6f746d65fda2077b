// Package apikey makes, stores and verifies API keys such as
//
//	pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P44UjKO
//
// which are a prefix, 30 random characters (178 bits), and 6 characters of
// checksum. The prefix names the service and the kind of key. The checksum lets
// the verifier refuse typing errors and garbage before any look-up, and lets a
// scanner tell a leaked key from other text. It is public, and no protection
// against forgery.
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
// A [Secret] prints as "[redacted]" with every verb of package fmt, in JSON and in
// log/slog. A [Digest] is a
// plain SHA-256: a key has too many bits to be guessed, so the slow hashes that
// passwords need would only slow down the service. The store looks a key up by
// its digest, and need not compare digests in constant time: a client cannot
// choose a key by its digest.
//
// # Verifying
//
// A [Verifier] finds the owner of a key in a [Store], with a cache in front of it.
// Its Verify method is a bearer.VerifyFunc:
//
//	verifier, err := apikey.NewVerifier(format, store, apikey.Options{})
//	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{})
//
// The cache keeps an answer of the store for at most one second, so a revocation
// and a new key act within a second on every replica, without messages between
// replicas. The cache observes the instants of expiry and revocation in a
// [Record] exactly.
package apikey
