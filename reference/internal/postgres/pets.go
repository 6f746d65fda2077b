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

// A querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}

// CreatePet stores a pet. See [store.Pets].
func (s *Store) CreatePet(ctx context.Context, p store.NewPet) (pet store.Pet, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, err
	}
	err = s.write(ctx, "create pet", func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		pet, err = addPet(ctx, conn, p)
		return err
	})
	if err != nil {
		return store.Pet{}, err
	}
	return pet, nil
}

func addPet(ctx context.Context, on querier, p store.NewPet) (store.Pet, error) {
	pet := store.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, store.Available)}
	err := on.QueryRow(ctx, insertPetText, pet.Name, pet.CategoryID, string(pet.Status)).Scan(&pet.ID)
	return pet, err
}

// Pet returns one pet. See [store.Pets].
func (s *Store) Pet(ctx context.Context, id int64) (pet store.Pet, err error) {
	err = s.read(ctx, "read pet", func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, petText, id).Scan(&pet.ID, &pet.Name, &pet.CategoryID, &pet.Status)
	})
	if err != nil {
		return store.Pet{}, err
	}
	return pet, nil
}

// ListPets returns a page of pets. See [store.Pets].
func (s *Store) ListPets(ctx context.Context, q store.ListQuery) (pets []store.Pet, more bool, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, err
	}
	err = s.read(ctx, "list pets", func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		pets, more, err = list(ctx, conn, q)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return pets, more, nil
}

// list lists pets for a query that is valid.
func list(ctx context.Context, on querier, q store.ListQuery) (pets []store.Pet, more bool, err error) {
	// One row over the limit tells whether there are more.
	text, args := listPetsText, []any{q.After, q.Limit + 1}
	if q.Status != "" {
		text, args = listStatusText, append(args, string(q.Status))
	}
	rows, err := on.Query(ctx, text, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()

	pets = make([]store.Pet, 0, min(q.Limit+1, 100))
	for rows.Next() {
		var p store.Pet
		if err := rows.Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status); err != nil {
			return nil, false, err
		}
		pets = append(pets, p)
	}
	if err := rows.Err(); err != nil {
		return nil, false, err
	}
	if more = len(pets) > q.Limit; more {
		pets = pets[:q.Limit]
	}
	return pets, more, nil
}
