package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// maxIdempotencyKey is the largest length of an idempotency key in characters.
const maxIdempotencyKey = store.MaxText

const (
	codeInvalidIdempotencyKey apierror.Code = "invalid_idempotency_key"
	codeIdempotencyKeyReused  apierror.Code = "idempotency_key_reused"
)

var (
	errIdempotencyKey = apierror.New(http.StatusBadRequest, codeInvalidIdempotencyKey,
		fmt.Sprintf("The Idempotency-Key header must be a single string of 1 to %d ASCII characters in double quotes. The quotes can be left out if it has only letters, digits and -._~:/+=.", maxIdempotencyKey))
	errIdempotencyKeyReused = apierror.New(http.StatusUnprocessableEntity, codeIdempotencyKeyReused,
		"This Idempotency-Key was used within the last 24 hours with a different request body. Send a new key with each new request.")
)

var (
	// bareKey matches a key without quotes, which the draft does not allow and most clients send.
	bareKey = regexp.MustCompile(`^[0-9A-Za-z._~:/+=-]+$`)

	// quotedKey matches a String of a structured field (RFC 9651 section 3.3.3). Parameters
	// are refused, because none is defined and the client relies on the key.
	quotedKey = regexp.MustCompile(`^"(?:[ !#-\[\]-~]|\\["\\])+"$`)

	unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
)

// idempotencyKey returns the value of Idempotency-Key, or "" if the request does not have
// the field (draft-ietf-httpapi-idempotency-key-header-07 section 2).
func idempotencyKey(h http.Header) (string, error) {
	lines := h["Idempotency-Key"]
	if len(lines) == 0 {
		return "", nil
	}
	key := ""
	switch line := lines[0]; {
	case bareKey.MatchString(line):
		key = line
	case quotedKey.MatchString(line):
		key = unescape.Replace(line[1 : len(line)-1])
	}
	if len(lines) > 1 || key == "" || len(key) > maxIdempotencyKey {
		return "", errIdempotencyKey
	}
	return key, nil
}

// fingerprintOf identifies what a request for createPet asks for, however its body is
// written. It is stored: another version of this function would take a request that is
// repeated during an upgrade for a different one.
func fingerprintOf(p store.NewPet) [32]byte {
	status := cmp.Or(p.Status, store.Available)
	return sha256.Sum256(fmt.Appendf(nil, "createPet\n%d\n%s\n%s", p.CategoryID, status, p.Name))
}

// storePet stores a pet, once if the request has an idempotency key. The keys of one owner
// have nothing to do with those of another.
func (a *api) storePet(ctx context.Context, r *http.Request, p store.NewPet, key string) (stored store.Pet, replayed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.StoreTimeout)
	defer cancel()
	if key == "" {
		stored, err = a.Pets.CreatePet(ctx, p)
		return stored, false, err
	}
	principal, _ := bearer.FromContext[apikey.Principal](r.Context()) // there is one behind the gate
	k := store.IdempotencyKey{Owner: principal.Owner, Key: key, Fingerprint: fingerprintOf(p), At: a.Now()}
	stored, replayed, err = a.Pets.CreatePetOnce(ctx, p, k)
	if errors.Is(err, store.ErrMismatch) {
		err = errIdempotencyKeyReused.Wrap(err)
	}
	return stored, replayed, err
}
