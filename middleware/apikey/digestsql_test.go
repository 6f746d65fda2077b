package apikey_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

var (
	_ driver.Valuer = apikey.Digest{}
	_ sql.Scanner   = (*apikey.Digest)(nil)
)

// DefaultParameterConverter is what database/sql applies to an argument.
func TestDigestAsArgument(t *testing.T) {
	d := apikey.DigestOf("abc")
	got, err := driver.DefaultParameterConverter.ConvertValue(d)
	if b, ok := got.([]byte); err != nil || !ok || !bytes.Equal(b, d[:]) {
		t.Errorf("a digest becomes the argument %v of type %T, %v; want its 32 bytes", got, got, err)
	}
	if got, err := driver.DefaultParameterConverter.ConvertValue((*apikey.Digest)(nil)); got != nil || err != nil {
		t.Errorf("a nil *Digest becomes %v, %v; want NULL", got, err)
	}
}

// A driver may use the bytes that it gives to Scan again, and a statement those of Value
// after the digest has changed.
func TestDigestSharesNoBytes(t *testing.T) {
	want := apikey.DigestOf("abc")
	d := want
	value, err := d.Value()
	if err != nil {
		t.Fatal(err)
	}
	d = apikey.DigestOf("another")
	if !bytes.Equal(value.([]byte), want[:]) {
		t.Error("the value changes with the digest")
	}
	column := bytes.Clone(want[:])
	if err := d.Scan(column); err != nil {
		t.Fatal(err)
	}
	clear(column)
	if d != want {
		t.Error("the digest changes with the column")
	}
}

func TestDigestScan(t *testing.T) {
	d := apikey.DigestOf("abc")
	text := d.String()
	for name, column := range map[string]any{
		"bytes":                        d[:],
		"text":                         text,
		"text in upper case":           strings.ToUpper(text),
		"text as bytes, as from MySQL": []byte(text),
	} {
		var got apikey.Digest
		if err := got.Scan(column); err != nil || got != d {
			t.Errorf("%s: read as %v, %v; want %v", name, got, err, d)
		}
	}
}

func TestDigestScanRefuses(t *testing.T) {
	d := apikey.DigestOf("abc")
	text := d.String()
	for name, tt := range map[string]struct {
		column any
		want   string
	}{
		"NULL":               {nil, "from NULL"},
		"number":             {int64(7), "type int64"},
		"empty bytes":        {[]byte{}, "column of 0 bytes"},
		"31 bytes":           {d[:31], "32 bytes or 64 hexadecimal digits, got a column of 31 bytes"},
		"bytes in a text":    {string(d[:]), "text of 32 bytes: want 64 hexadecimal digits, or a column of bytes"},
		"63 digits":          {text[1:], "column of 63 bytes"},
		"not hexadecimal":    {text[1:] + "g", "only hexadecimal digits"},
		"PostgreSQL's bytea": {`\x` + text, "column of 66 bytes"},
	} {
		got := d
		err := got.Scan(tt.column)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, tt.want)
		}
		if got != d {
			t.Errorf("%s is refused and still changes the digest", name)
		}
	}
}
