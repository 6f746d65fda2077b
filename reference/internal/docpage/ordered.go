package docpage

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ordered is a JSON object that keeps the order of its members, since that is the order
// in which the author wants them read.
type ordered []member

type member struct {
	Name  string
	Value json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *ordered) UnmarshalJSON(object []byte) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not an object"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member{Name: name.(string)} // the Decoder accepts only strings as names
		if err := d.Decode(&m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}
