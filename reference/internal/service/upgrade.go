package service

import (
	"log/slog"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

// logUpgrade logs that the database is upgraded, and where a copy of the older one is
// kept.
func (o Options) logUpgrade(u database.Upgrade) {
	from, to := slog.Int64("from", u.From), slog.Int64("to", u.To)
	if u.Copy == "" {
		o.Logger.Info("upgrading the database", slog.String("database", u.Database), from, to)
		return
	}
	o.Logger.Info("upgrading the database; a copy of the older one is kept",
		slog.String("file", u.Database), from, to, slog.String("copy", u.Copy))
}
