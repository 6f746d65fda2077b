package failover

import "fmt"

// A Mode says what decides while the primary does not. New refuses the zero Mode,
// because this choice must be stated.
type Mode uint8

const (
	// Local: an embedded engine decides, under the same plans. What it admits is
	// charged to the primary once that is back.
	Local Mode = iota + 1
	// Open: every request is admitted, and counted nowhere.
	Open
	// Closed: no request is decided. The error wraps [ratelimit.ErrUnavailable],
	// which the middleware of package ratelimit answers with 503 and Retry-After.
	Closed
)

var modes = [...]string{Local: "local", Open: "open", Closed: "closed"}

func (m Mode) valid() bool { return m >= Local && m <= Closed }

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
	for i := Local; i <= Closed; i++ {
		if modes[i] == string(text) {
			*m = i
			return nil
		}
	}
	return fmt.Errorf("failover: mode %q: want local, open or closed", text)
}
