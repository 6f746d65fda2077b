package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/adminapi"
)

// listBans lists the bans in force, those that end last first.
func (a *admin) listBans(w http.ResponseWriter, r *http.Request, s *Server) error {
	inForce, err := s.Limiter.Bans(r.Context())
	if err != nil {
		return err
	}
	slices.SortFunc(inForce, func(x, y ratelimit.Ban) int {
		return cmp.Or(y.Ends.Compare(x.Ends), cmp.Compare(x.Subject, y.Subject))
	})
	answer := adminapi.BanList{Bans: make([]adminapi.Ban, len(inForce))}
	for i, b := range inForce {
		answer.Bans[i] = showBan(b)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// networkPrefix begins the subject of a network; see [clientip.NetworkSubject].
const networkPrefix = "network:"

func showBan(b ratelimit.Ban) adminapi.Ban {
	ban := adminapi.Ban{Ends: b.Ends.UTC(), Level: b.Level}
	if owner, ok := strings.CutPrefix(b.Subject, apikey.OwnerSubject("")); ok {
		ban.Owner = owner
	} else {
		ban.Network = strings.TrimPrefix(b.Subject, networkPrefix)
	}
	return ban
}
