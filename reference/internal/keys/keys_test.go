package keys_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/keys"
)

func TestDurationIsText(t *testing.T) {
	var n keys.New
	if err := json.Unmarshal([]byte(`{"name":"n","expiresIn":"90m"}`), &n); err != nil || time.Duration(n.ExpiresIn) != 90*time.Minute {
		t.Errorf("expiresIn is %v, %v, want 90 minutes", time.Duration(n.ExpiresIn), err)
	}
	body, err := json.Marshal(n)
	if want := `{"name":"n","owner":"","plan":"","expiresIn":"1h30m0s"}`; err != nil || string(body) != want {
		t.Errorf("a New is %s, %v, want %s", body, err, want)
	}
	for _, text := range []string{`"tomorrow"`, `90`, `""`} {
		if err := json.Unmarshal([]byte(`{"expiresIn":`+text+`}`), &n); err == nil {
			t.Errorf("expiresIn may be %s, want an error", text)
		}
	}
}

func TestCheckNamesTheField(t *testing.T) {
	noPlan := func(string, []string) (*ratelimit.Plan, error) { return nil, errors.New("no such plan") }
	anyPlan := func(string, []string) (*ratelimit.Plan, error) { return nil, nil }
	minus := keys.Duration(-1)
	for _, tt := range []struct {
		err         error
		field, want string
	}{
		{keys.New{Name: "n", Owner: "o"}.Check(anyPlan), "", ""},
		{keys.New{Name: "n", Owner: "o"}.Check(nil), "", ""},
		{keys.New{Name: "n", Owner: "o"}.Check(noPlan), "", "no such plan"},
		{keys.New{Owner: "o"}.Check(nil), "name", "name must have 1 to 255 characters, got none"},
		{keys.New{Name: "n"}.Check(nil), "owner", "owner must have 1 to 255 characters, got none"},
		{keys.New{Name: "n", Owner: "o", ExpiresIn: -1}.Check(nil), "expiresIn", "expiresIn must not be negative, got -1ns"},
		{keys.Replacement{}.Check(), "", ""},
		{keys.Replacement{Overlap: &minus}.Check(), "overlap", "overlap must not be negative, got -1ns"},
		{keys.Replacement{ExpiresIn: &minus}.Check(), "expiresIn", "expiresIn must not be negative, got -1ns"},
	} {
		text, field := "", ""
		if tt.err != nil {
			text = tt.err.Error()
		}
		if e, ok := errors.AsType[*keys.FieldError](tt.err); ok {
			field = e.Field
		}
		if text != tt.want || field != tt.field {
			t.Errorf("Check = %q about the field %q, want %q about %q", text, field, tt.want, tt.field)
		}
	}
}
