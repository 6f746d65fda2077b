package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Banner bans and unbans subjects by hand. Engines may implement it.
type Banner interface {
	// Ban bans subject for the given time from now, rounded up to a whole
	// second, and replaces any ban in force. It does not raise the level of later
	// bans. The time without a ban that lowers the level counts anew from the end of each
	// ban, which may be one made by hand.
	//
	// The reason is what clients read during the ban, such as "your requests load one page in a
	// loop". It has at most 200 bytes of UTF-8, without control characters and without spaces
	// at its ends. The two that are not such a text are "by hand", which "" stands for, and
	// "strikes", for the ban of a penalty that is moved from another engine. The error for any
	// other reason or length wraps [ratelimit.ErrInvalid].
	Ban(ctx context.Context, subject string, length time.Duration, reason string) error
	// Unban ends the ban of subject, and forgets its strikes and its level. It reports
	// whether a ban was in force.
	Unban(ctx context.Context, subject string) (bool, error)
	// Bans returns the bans in force, in no particular order.
	Bans(ctx context.Context) ([]Ban, error)
}

// A Ban is the ban of one subject.
type Ban struct {
	Subject string
	Ends    time.Time

	// Level is 1 for the first ban, and rises with each ban that follows too soon.
	// A ban made by hand keeps the level of the one before it, or has 0.
	Level int

	Reason string // as in [ratelimit.Decision.BanReason]
}

// The reasons of bans that are not a text of the operator.
const (
	ReasonStrikes = "strikes"
	ReasonByHand  = "by hand"
)

// CheckBan returns the reason of a ban by hand: [ReasonByHand] for "". An error wraps
// [ratelimit.ErrInvalid]. The Ban of every engine begins with it.
func CheckBan(subject string, length time.Duration, reason string) (string, error) {
	switch {
	case subject == "":
		return "", fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)
	case length <= 0 || length > fixedwindow.MaxLength:
		return "", fmt.Errorf("%w: the length of a ban must be above 0s and at most %dh, got %v",
			ratelimit.ErrInvalid, fixedwindow.MaxLength/time.Hour, length)
	case len(reason) > plan.MaxReason || !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl) || strings.TrimSpace(reason) != reason:
		return "", fmt.Errorf("%w: the reason of a ban must be at most %d bytes of UTF-8, without control characters and without spaces at its ends, got %.*q",
			ratelimit.ErrInvalid, plan.MaxReason, plan.MaxReason, reason)
	}
	return cmp.Or(reason, ReasonByHand), nil
}
