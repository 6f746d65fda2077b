package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// keys returns what lists and changes the keys for a request.
func (a *admin) keys(r *http.Request, s *Server) keys.Manager {
	return keys.Manager{Store: s.Store, Plan: s.Plan, Actor: actor(r), Now: a.Now}
}

func (a *admin) listKeys(w http.ResponseWriter, r *http.Request, s *Server) error {
	list, err := a.keys(r, s).List(r.Context())
	if err != nil {
		return keyError(err)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"keys": list})
}

// createKey answers with the new key, which is shown only in this answer.
func (a *admin) createKey(w http.ResponseWriter, r *http.Request, s *Server) error {
	var n keys.New
	if err := readJSON(w, r, &n); err != nil {
		return err
	}
	issued, err := a.keys(r, s).Create(r.Context(), n)
	if err != nil {
		return keyError(err)
	}
	entryOf(r.Context()).key = issued.Key.ID
	return writeJSON(w, http.StatusCreated, issued)
}

func (a *admin) revokeKey(w http.ResponseWriter, r *http.Request, s *Server) error {
	revoked, err := a.keys(r, s).Revoke(r.Context(), r.PathValue("id"))
	if err != nil {
		return keyError(err)
	}
	entryOf(r.Context()).key = revoked.Key.ID
	return writeJSON(w, http.StatusOK, revoked)
}

// rotateKey answers with the new key, which is shown only in this answer.
func (a *admin) rotateKey(w http.ResponseWriter, r *http.Request, s *Server) error {
	var replacement keys.Replacement
	if err := readJSON(w, r, &replacement); err != nil {
		return err
	}
	rotated, err := a.keys(r, s).Rotate(r.Context(), r.PathValue("id"), replacement)
	if err != nil {
		return keyError(err)
	}
	entryOf(r.Context()).key = rotated.Old.ID
	return writeJSON(w, http.StatusCreated, rotated)
}

// keyError returns the answer for an error of a [keys.Manager].
func keyError(err error) error {
	if e, ok := errors.AsType[*keys.FieldError](err); ok {
		return invalidBody(e.Error() + ".") // it begins with the name of the member
	}
	_, plan := errors.AsType[*keys.PlanError](err)
	switch {
	case plan, errors.Is(err, store.ErrInvalid):
		return invalidBody(sentence(err))
	case errors.Is(err, store.ErrNotFound):
		return apierror.New(http.StatusNotFound, "key_not_found", sentence(err))
	case errors.Is(err, store.ErrInactive):
		return apierror.New(http.StatusConflict, "key_inactive", sentence(err))
	default:
		return storeError(err)
	}
}

// storeError returns the answer for an error of the store.
func storeError(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return errDatabase.Wrap(err)
	}
	return err
}

var errDatabase = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
	"The database cannot be used at the moment. GET /readyz and the log say why.")

// sentence returns the text of an error as a sentence. The command line shows the same
// text after "petstore: ".
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
