package docpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// A Response is one response of an operation.
type Response struct {
	Status      string // "200", or "Other errors" for all that are not listed
	Phrase      string // "OK"; empty for other errors
	Class       string // good, warn or bad, for its colour
	Description string
	Type        *Type // of the body; nil: it has none
	Headers     []Header
	Examples    []Example
}

// A Header is a header field of a response.
type Header struct{ Name, Description, Example string }

// An Example is a body.
type Example struct{ Name, Text string }

type mediaType struct {
	Schema   json.RawMessage `json:"schema"`
	Examples ordered         `json:"examples"`
}

func (d *document) response(status string, raw json.RawMessage) (Response, error) {
	r, _, err := resolve[struct {
		Description string
		Headers     ordered
		Content     map[string]mediaType
	}](d, raw)
	if err != nil {
		return Response{}, err
	}
	answer := Response{Status: status, Class: "bad", Description: r.Description}
	switch code, err := strconv.Atoi(status); {
	case err != nil:
		answer.Status = "Other errors"
	default:
		answer.Phrase, answer.Class = http.StatusText(code), class(code)
	}
	for _, m := range r.Headers {
		h, err := d.header(m)
		if err != nil {
			return answer, fmt.Errorf("headers: %s: %w", m.Name, err)
		}
		answer.Headers = append(answer.Headers, h)
	}
	media, ok := r.Content["application/json"]
	if !ok {
		return answer, nil
	}
	t, _, err := d.typeOf(media.Schema)
	if err != nil {
		return answer, err
	}
	answer.Type = &t
	answer.Examples, err = d.examples(media)
	return answer, err
}

// header returns a header field. Most responses refer to the same ones.
func (d *document) header(m member) (Header, error) {
	known := m.Name + string(m.Value)
	if h, ok := d.headers[known]; ok {
		return h, nil
	}
	h, _, err := resolve[struct {
		Description string
		Example     json.RawMessage
	}](d, m.Value)
	if err != nil {
		return Header{}, err
	}
	d.headers[known] = Header{m.Name, h.Description, plain(h.Example)}
	return d.headers[known], nil
}

func class(status int) string {
	switch {
	case status < 400:
		return "good"
	case status == http.StatusTooManyRequests:
		return "warn"
	default:
		return "bad"
	}
}

func (d *document) examples(media mediaType) ([]Example, error) {
	var examples []Example
	for _, m := range media.Examples {
		e, _, err := resolve[struct{ Value json.RawMessage }](d, m.Value)
		if err != nil {
			return nil, fmt.Errorf("examples: %s: %w", m.Name, err)
		}
		examples = append(examples, Example{m.Name, indent(e.Value)})
	}
	return examples, nil
}
