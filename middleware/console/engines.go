package console

import (
	"path"
	"reflect"
	"strings"
)

// An engineFacts has the numbers of one engine.
type engineFacts struct {
	Engine string         `json:"engine"` // the name of its package
	Away   bool           `json:"away"`   // the circuit is open: the shared engine does not decide
	Facts  map[string]any `json:"facts"`
}

// factsOf returns the numbers that the method Stats of an engine returns in a struct, as those of
// packages memory, lease and failover do, and whether the engine has the method.
func factsOf(engine any) (e engineFacts, ok bool) {
	method := reflect.ValueOf(engine).MethodByName("Stats")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 || method.Type().Out(0).Kind() != reflect.Struct {
		return e, false
	}
	stats := method.Call(nil)[0]
	e.Engine, e.Facts = path.Base(stats.Type().PkgPath()), map[string]any{}
	for field, value := range stats.Fields() {
		if field.IsExported() {
			e.Facts[strings.ToLower(field.Name)] = value.Interface()
		}
	}
	if circuit, ok := engine.(interface{ Open() bool }); ok {
		e.Away = circuit.Open()
	}
	return e, true
}
