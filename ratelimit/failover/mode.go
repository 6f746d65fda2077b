package failover

import "fmt"

// A Mode says what decides while the primary does not. New refuses the zero Mode,
// because this choice must be stated.
type Mode uint8

const (
	// FailLocal: an embedded engine decides, under the same plans. What it admits is
	// charged to the primary once that is back.
	FailLocal Mode = iota + 1
	// FailOpen: every request is admitted, and counted nowhere.
	FailOpen
	// FailClosed: no request is decided. The error wraps [ratelimit.ErrUnavailable],
	// which the middleware of package ratelimit answers with 503 and Retry-After.
	FailClosed
)

var modes = [...]string{FailLocal: "local", FailOpen: "open", FailClosed: "closed"}

func (m Mode) valid() bool { return m >= FailLocal && m <= FailClosed }

// String returns "local", "open" or "closed".
func (m Mode) String() string {
	if !m.valid() {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modes[m]
}

// MarshalText gives what String does. A mode that is not valid is an error.
func (m Mode) MarshalText() ([]byte, error) {
	if !m.valid() {
		return nil, fmt.Errorf("failover: %v is not a mode", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (m *Mode) UnmarshalText(text []byte) error {
	for i := FailLocal; i <= FailClosed; i++ {
		if modes[i] == string(text) {
			*m = i
			return nil
		}
	}
	return fmt.Errorf("failover: mode %q: want local, open or closed", text)
}
