package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const insertPetText = `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id`

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
