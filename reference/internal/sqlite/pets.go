package sqlite

import (
	"cmp"
	"context"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const insertPetText = `INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)`

// CreatePet stores a pet. See [store.Pets].
func (s *Store) CreatePet(ctx context.Context, p store.NewPet) (pet store.Pet, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, err
	}
	pet = store.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, store.Available)}
	err = s.write(ctx, "create pet", func(ctx context.Context) error {
		result, err := s.writer.exec(ctx, insertPetText, pet.Name, pet.CategoryID, string(pet.Status))
		if err != nil {
			return err
		}
		pet.ID, err = result.LastInsertId()
		return err
	})
	if err != nil {
		return store.Pet{}, err
	}
	return pet, nil
}
