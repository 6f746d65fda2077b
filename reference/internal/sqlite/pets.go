package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	insertPetText  = `INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)`
	petText        = `SELECT id, name, category_id, status FROM pets WHERE id = ?`
	listPetsText   = `SELECT id, name, category_id, status FROM pets WHERE id > ? ORDER BY id LIMIT ?`
	listStatusText = `SELECT id, name, category_id, status FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?`
)

// CreatePet stores a pet. See [store.Pets].
func (s *Store) CreatePet(ctx context.Context, p store.NewPet) (pet store.Pet, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, err
	}
	err = s.writer.writeStatement(ctx, func(ctx context.Context) (err error) {
		pet, err = s.addPet(ctx, p)
		return err
	})
	if err != nil {
		return store.Pet{}, s.wrap("create pet", err)
	}
	return pet, nil
}

// addPet is called by the writer.
func (s *Store) addPet(ctx context.Context, p store.NewPet) (store.Pet, error) {
	pet := store.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, store.Available)}
	result, err := s.insertPet.ExecContext(ctx, pet.Name, pet.CategoryID, string(pet.Status))
	if err != nil {
		return store.Pet{}, err
	}
	pet.ID, err = result.LastInsertId()
	return pet, err
}

// Pet returns one pet. See [store.Pets].
func (s *Store) Pet(ctx context.Context, id int64) (store.Pet, error) {
	var p store.Pet
	err := s.pet.QueryRowContext(ctx, id).Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Pet{}, s.wrap("read pet", err)
	}
	return p, nil
}

// ListPets returns a page of pets. See [store.Pets].
func (s *Store) ListPets(ctx context.Context, q store.ListQuery) (pets []store.Pet, more bool, err error) {
	return s.list(ctx, q, s.listPets, s.listStatus)
}

// list lists pets by one of two statements: all, or byStatus.
func (s *Store) list(ctx context.Context, q store.ListQuery, all, byStatus *sql.Stmt) (pets []store.Pet, more bool, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, err
	}
	// One row over the limit tells whether there are more.
	stmt, args := all, []any{q.After, q.Limit + 1}
	if q.Status != "" {
		stmt, args = byStatus, []any{string(q.Status), q.After, q.Limit + 1}
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, false, s.wrap("list pets", err)
	}
	defer rows.Close()

	pets = make([]store.Pet, 0, min(q.Limit, 100))
	for rows.Next() {
		if len(pets) == q.Limit {
			more = true
			break
		}
		var p store.Pet
		if err := rows.Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status); err != nil {
			return nil, false, s.wrap("list pets", err)
		}
		pets = append(pets, p)
	}
	if err := rows.Err(); err != nil {
		return nil, false, s.wrap("list pets", err)
	}
	return pets, more, nil
}
