package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Ban is the ban of an owner or of a network; the other field is empty.
type Ban struct {
	Owner   string    `json:"owner,omitempty"`
	Network string    `json:"network,omitempty"`
	Ends    time.Time `json:"ends"`
	Level   int       `json:"level"` // 1 for a first ban; higher for each that followed too soon; 0 if all were made by hand
}

type bans struct {
	Bans []Ban `json:"bans"`
}

// listBans lists the bans in force, those that end last first.
func (a *admin) listBans(w http.ResponseWriter, r *http.Request, s *Server) error {
	inForce, err := s.Limiter.Bans(r.Context())
	if err != nil {
		return err
	}
	slices.SortFunc(inForce, func(x, y ratelimit.Ban) int {
		return cmp.Or(y.Ends.Compare(x.Ends), cmp.Compare(x.Subject, y.Subject))
	})
	answer := bans{Bans: make([]Ban, len(inForce))}
	for i, b := range inForce {
		answer.Bans[i] = showBan(b)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// networkPrefix begins the subject of a network; see [clientip.NetworkSubject].
const networkPrefix = "network:"

func showBan(b ratelimit.Ban) Ban {
	ban := Ban{Ends: b.Ends.UTC(), Level: b.Level}
	if owner, ok := strings.CutPrefix(b.Subject, apikey.OwnerSubject("")); ok {
		ban.Owner = owner
	} else {
		ban.Network = strings.TrimPrefix(b.Subject, networkPrefix)
	}
	return ban
}
