package bearer

import (
	"errors"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
)

// tokenErrors are the errors with the name of the token in their text.
type tokenErrors struct {
	missing, invalid, unavailable *apierror.Error
}

func newTokenErrors(name string) tokenErrors {
	return tokenErrors{
		missing: apierror.New(http.StatusUnauthorized, apierror.CodeMissingAPIKey,
			"No "+name+" was sent. Send it as Authorization: Bearer <"+name+">.").Preencoded(),
		invalid: apierror.New(http.StatusUnauthorized, apierror.CodeInvalidAPIKey,
			"The "+name+" is not valid.").Preencoded(),
		unavailable: apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
			"The "+name+" cannot be checked at the moment. Wait as long as Retry-After says."),
	}
}

// invalidFor returns the error of a token that is not valid. If the token was too long
// to verify, the error is logged: MaxToken may be too small.
func (e tokenErrors) invalidFor(reason error) *apierror.Error {
	if errors.Is(reason, errTooLong) {
		return e.invalid.Wrap(reason)
	}
	return e.invalid
}
