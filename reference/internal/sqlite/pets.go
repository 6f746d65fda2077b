package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	insertPetText  = `INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)`
	petText        = `SELECT id, name, category_id, status FROM pets WHERE id = ?`
	listPetsText   = pageText + `WHERE id > ? ORDER BY id LIMIT ?)`
	listStatusText = pageText + `WHERE status = ? AND id > ? ORDER BY id LIMIT ?)`

	// A page is one row with one text, because a row costs the driver as much as finding
	// it costs SQLite. parsePets reads the text.
	pageText = `SELECT group_concat(id || ' ' || category_id || ' ' || status || ' ' || octet_length(name) || ' ' || name, '')
		FROM (SELECT id, category_id, status, name FROM pets `
)

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

// Pet returns one pet. See [store.Pets].
func (s *Store) Pet(ctx context.Context, id int64) (p store.Pet, err error) {
	err = s.reads.row(ctx, petText, []any{id}, &p.ID, &p.Name, &p.CategoryID, &p.Status)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	return p, s.wrap("read pet", err)
}

// ListPets returns a page of pets. See [store.Pets].
func (s *Store) ListPets(ctx context.Context, q store.ListQuery) (pets []store.Pet, more bool, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, err
	}
	// One row over the limit tells whether there are more.
	query, args := listPetsText, []any{q.After, q.Limit + 1}
	if q.Status != "" {
		query, args = listStatusText, []any{string(q.Status), q.After, q.Limit + 1}
	}
	var text sql.NullString // no pets are NULL
	if err = s.reads.row(ctx, query, args, &text); err == nil {
		pets, err = parsePets(text.String, q.Limit+1)
	}
	if err != nil {
		return nil, false, s.wrap("list pets", err)
	}
	if len(pets) > q.Limit {
		return pets[:q.Limit], true, nil
	}
	return pets, false, nil
}

// parsePets parses a page of up to n pets. The names are parts of text, which is not
// copied.
//
//	page = *( id SP category SP status SP length-of-name SP name )
func parsePets(text string, n int) ([]store.Pet, error) {
	pets := make([]store.Pet, 0, min(n, strings.Count(text, " ")/4+1))
	for text != "" {
		var field [4]string
		for i := range field {
			field[i], text, _ = strings.Cut(text, " ")
		}
		id, idErr := strconv.ParseInt(field[0], 10, 64)
		category, categoryErr := strconv.ParseInt(field[1], 10, 64)
		length, lengthErr := strconv.Atoi(field[3])
		if err := errors.Join(idErr, categoryErr, lengthErr); err != nil {
			return nil, fmt.Errorf("a page of pets is damaged: %w", err)
		}
		if length < 0 || length > len(text) {
			return nil, fmt.Errorf("a page of pets is damaged: a name of %d bytes in %d", length, len(text))
		}
		pets = append(pets, store.Pet{ID: id, Name: text[:length], CategoryID: category, Status: store.Status(field[2])})
		text = text[length:]
	}
	return pets, nil
}
