package docpage

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A document is an OpenAPI document in which references are resolved.
type document struct {
	json    json.RawMessage
	objects map[string]map[string]json.RawMessage // decoded already, by their JSON Pointers
	headers map[string]Header                     // resolved already, by their JSON
}

// resolve decodes raw. If raw is a reference, it decodes what it refers to, and then
// the members beside $ref over it (OpenAPI 3.1). name is the last part of the
// reference, such as "Pet", or "" if raw is none.
func resolve[T any](d *document, raw json.RawMessage) (value T, name string, err error) {
	var r struct {
		Ref string `json:"$ref"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return value, "", err
	}
	if r.Ref != "" {
		target, err := d.lookup(r.Ref)
		if err != nil {
			return value, "", err
		}
		if value, _, err = resolve[T](d, target); err != nil {
			return value, "", err
		}
		name = r.Ref[strings.LastIndexByte(r.Ref, '/')+1:]
	}
	return value, name, json.Unmarshal(raw, &value)
}

// lookup returns what a JSON Pointer into the document refers to, such as
// "#/components/schemas/Pet".
func (d *document) lookup(pointer string) (json.RawMessage, error) {
	path, local := strings.CutPrefix(pointer, "#/")
	if !local {
		return nil, fmt.Errorf("%s: only references within the document are supported", pointer)
	}
	at, value := "#", d.json
	for name := range strings.SplitSeq(path, "/") {
		object, ok := d.objects[at]
		if !ok {
			if err := json.Unmarshal(value, &object); err != nil {
				return nil, fmt.Errorf("%s: %w", pointer, err)
			}
			d.objects[at] = object
		}
		if value, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; !ok {
			return nil, fmt.Errorf("%s: there is no %s", pointer, name)
		}
		at += "/" + name
	}
	return value, nil
}
