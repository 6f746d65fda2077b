package gatehouseconnect

import (
	"reflect"
	"testing"
)

// Every option reaches the gate, also one that is added later.
func TestForGateForgetsNoOption(t *testing.T) {
	var opts Options
	from := reflect.ValueOf(&opts).Elem()
	for i := range from.NumField() {
		switch field := from.Field(i); field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int:
			field.SetInt(1)
		case reflect.Uint8:
			field.SetUint(1)
		case reflect.Func:
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			t.Fatalf("this test sets no %s, as Options.%s is", field.Kind(), from.Type().Field(i).Name)
		}
	}
	gate := opts.forGate()
	to := reflect.ValueOf(gate)
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			t.Errorf("Options.%s does not reach the gate", to.Type().Field(i).Name)
		}
	}
	if from.NumField() != to.NumField() {
		t.Errorf("Options has %d fields, and those of rpclimit %d", from.NumField(), to.NumField())
	}
}
