package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	insertPetText = `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id`
	petText       = `SELECT id, name, category_id, status FROM pets WHERE id = $1`
	listPetsText  = `SELECT id, name, category_id, status FROM pets WHERE id > $1 ORDER BY id LIMIT $2`

	// Only the index by status and ID has this order. With status = $3, PostgreSQL could
	// read pets of other statuses in order of their IDs, hoping to find enough soon.
	listStatusText = `SELECT id, name, category_id, status FROM pets
		WHERE (status, id) > ($3, $1) AND status <= $3 ORDER BY status, id LIMIT $2`
)

// CreatePet stores a pet. See [store.Pets].
func (s *Store) CreatePet(ctx context.Context, p store.NewPet) (pet store.Pet, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, err
	}
	pet = store.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, store.Available)}
	err = s.write(ctx, "create pet", func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, insertPetText, pet.Name, pet.CategoryID, string(pet.Status)).Scan(&pet.ID)
	})
	if err != nil {
		return store.Pet{}, err
	}
	return pet, nil
}

// Pet returns one pet. See [store.Pets].
func (s *Store) Pet(ctx context.Context, id int64) (pet store.Pet, err error) {
	err = s.read(ctx, "read pet", func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, petText, id).Scan(&pet.ID, &pet.Name, &pet.CategoryID, &pet.Status)
	})
	return pet, err
}

// ListPets returns a page of pets. See [store.Pets].
func (s *Store) ListPets(ctx context.Context, q store.ListQuery) (pets []store.Pet, more bool, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, err
	}
	// One row over the limit tells whether there are more.
	text, args := listPetsText, []any{q.After, q.Limit + 1}
	if q.Status != "" {
		text, args = listStatusText, append(args, string(q.Status))
	}
	err = s.read(ctx, "list pets", func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		pets, err = pgx.AppendRows(make([]store.Pet, 0, min(q.Limit+1, 100)), rows, pgx.RowToStructByPos[store.Pet])
		return err
	})
	if len(pets) > q.Limit {
		return pets[:q.Limit], true, err
	}
	return pets, false, err
}
