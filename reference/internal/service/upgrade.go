package service

import (
	"log/slog"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// logUpgrade logs that the database is upgraded, and where the older one is kept.
func (o Options) logUpgrade(u sqlite.Upgrade) {
	o.Logger.Info("upgrading the database; a copy of the older one is kept",
		slog.String("file", u.File), slog.Int64("from", u.From), slog.Int64("to", u.To), slog.String("copy", u.Copy))
}
