package jsonbody_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

func BenchmarkDecode(b *testing.B) {
	body := newPetBody(b, jsonbody.Options{})
	w, r := httptest.NewRecorder(), post(dog)
	text := strings.NewReader(dog)
	r.Body = io.NopCloser(text)
	b.ReportAllocs()
	for b.Loop() {
		text.Reset(dog)
		if _, err := body.Decode(w, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"good", dog},
		{"escaped", `{"name":"R\u00e9x","categoryId":7e0}`},
		{"two members at fault", `{"name":"","categoryId":7,"status":"gone"}`},
		{"not JSON", `{"name":"Rex","categoryId":7,}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			body := newPetBody(b, jsonbody.Options{})
			data := []byte(bb.text)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = body.Parse(data)
			}
		})
	}
}

// BenchmarkValidateOnly is what the validator alone takes of BenchmarkParse/good.
func BenchmarkValidateOnly(b *testing.B) {
	schema := reference(b, openAPI, "#/components/schemas/NewPet")
	tree := map[string]any{"name": "Rex", "categoryId": json.Number("7"), "status": "available"}
	b.ReportAllocs()
	for b.Loop() {
		if err := schema.Validate(tree); err != nil {
			b.Fatal(err)
		}
	}
}
