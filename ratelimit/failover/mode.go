package failover

import "fmt"

// A Mode says what decides while the primary does not. The zero Mode is not valid:
// the choice must be stated.
type Mode uint8

const (
	// FailLocal: an embedded engine, [Options.Local], decides under the same plans.
	// The primary must be a [ratelimit.Adjuster].
	//
	// Each process decides alone. If it has seen the primary deny a subject, or the
	// subject use half of a quota there, the local engine knows the usage and the ban.
	// Any other subject starts from zero. So in one window, with what the primary
	// admitted before, a process admits less than one and a half limits, and N processes
	// less than N and a half. Usage and bans are only raised here: a refund at the
	// primary, and a reset or an unban that another process makes there, are not noticed
	// until the window or the ban ends.
	//
	// What the local engine admits is charged to the primary when it is back, in the
	// windows that were charged here and have not ended: in the background, or before the
	// next request of the subject. Adjustments made meanwhile are sent to the primary too. A
	// charge that fails is repeated with the same id. If the primary refuses the charges of
	// one subject, that subject alone waits, and is decided here. Strikes and bans of the
	// local engine are not merged. If the process ends first, its journal is lost.
	//
	// The clocks of this machine and of the primary should agree to within a small
	// part of the shortest window: usage is not charged where its window has ended by
	// the other clock, and is charged early where its window has not begun.
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

// MarshalText returns the text of String. A mode that is not valid is an error.
func (m Mode) MarshalText() ([]byte, error) {
	if !m.valid() {
		return nil, fmt.Errorf("failover: the mode must be FailLocal, FailOpen or FailClosed, got %v", m)
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
	return fmt.Errorf("failover: the mode must be local, open or closed, got %q", text)
}
