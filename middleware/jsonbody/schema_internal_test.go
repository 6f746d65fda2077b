package jsonbody

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

// A number that parse would refuse makes the validator panic, and a type that is no
// JSON makes it give up. Neither is the client's fault, nor for it to know about.
func TestValidatorThatFails(t *testing.T) {
	s, err := compile([]byte(`{"properties":{"n":{"type":"integer"}}}`), "#")
	testcheck.NoError(t, err)
	for name, v := range map[string]any{
		"panic": json.Number("1e1000001"),
		"error": struct{}{},
	} {
		problems, err := s.check(map[string]any{"n": v})
		if err == nil || problems != nil || !strings.HasPrefix(err.Error(), "jsonbody: applying the schema: ") {
			t.Errorf("%s: got %v, %v, want an error of the server", name, problems, err)
		}
		if _, ok := errors.AsType[*apierror.Error](err); ok {
			t.Errorf("%s: the error %v has public text", name, err)
		}
	}
}
