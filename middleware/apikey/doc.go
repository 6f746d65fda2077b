// Package apikey makes, stores and verifies API keys such as
//
//	pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P44UjKO
//
// A key is a prefix, 30 random characters (178 bits) and 6 characters of checksum. A
// service stores the digest of a key, and shows the key once:
//
//	format, err := apikey.NewFormat("pet_live_")
//	secret := format.Generate()
//	insert(apikey.NewKeyID(), secret.Digest(), secret.LastFour(), ...) // into your table
//	fmt.Println(secret.Reveal())
//
// Package sqlkeys does this in SQLite and PostgreSQL. A [Verifier] finds the owner of a key in a
// [Store], behind a cache. Its Verify method is what package bearer needs:
//
//	verifier, err := apikey.NewVerifier(format, store, apikey.Options{})
//	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{})
//
// Handlers get a [Principal]: key ID, owner and plan. A service that needs more, such as
// scopes, embeds it in a type of its own, and its store is a [Store] of that type.
//
// The cache keeps an answer of the store for one second. A revocation and a new key
// therefore take effect within a second on every replica, without messages between
// replicas. [Options.TTL] can be longer, where a store is slow or asked too often, and
// revocations may take effect later. A network that guesses keys gets 60 look-ups a minute. Both
// hold for keys of any format: NewVerifier takes nil for it.
package apikey
