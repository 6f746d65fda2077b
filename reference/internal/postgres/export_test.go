package postgres

import (
	"context"
	"io/fs"
)

// OpenVersion is Open of a program with other migrations.
func OpenVersion(ctx context.Context, url string, o Options, files fs.FS) (*Store, error) {
	return open(ctx, url, o.withDefaults(), migrations{files})
}

// MigrateVersion is Migrate of a program with other migrations.
func MigrateVersion(ctx context.Context, url string, files fs.FS) (from, to int64, err error) {
	return migrations{files}.migrate(ctx, url)
}

// Migrations returns the files of the migrations.
func Migrations() fs.FS { return ownMigrations().files }

// Explain is the text of an error of a call.
func (s *Store) Explain(err error) error { return s.wrap("call", err) }

// The statements that requests run.
const (
	ListPetsText    = listPetsText
	ListStatusText  = listStatusText
	PetText         = petText
	KeyByDigestText = keyByDigestText
)
