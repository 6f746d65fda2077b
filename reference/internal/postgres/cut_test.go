//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A connection that is reset anywhere in a call: a pet that is acknowledged is stored, a
// pet that is refused is not, and none is stored twice.
func TestConnectionsCutInCalls(t *testing.T) {
	url := postgrestest.Database(t)
	p := through(t, url)
	s := open(t, p.url+"&pool_max_conns=1", postgres.Options{})
	beside, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close(context.Background())
	number := int64(0)
	for name, create := range map[string]func(store.NewPet, store.IdempotencyKey) (store.Pet, error){
		"CreatePet": func(n store.NewPet, _ store.IdempotencyKey) (store.Pet, error) {
			return s.CreatePet(context.Background(), n)
		},
		"CreatePetIf": func(n store.NewPet, k store.IdempotencyKey) (store.Pet, error) {
			pet, _, err := s.CreatePetIf(context.Background(), n, &k, always)
			return pet, err
		},
	} {
		call := func() (int64, store.Pet, error) {
			number++
			pet, err := create(store.NewPet{Name: "Rex", CategoryID: number}, store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(number), At: noon})
			return number, pet, err
		}
		for _, way := range []direction{toServer, toClient} {
			counts := map[string]int{}
			for cut, passed := 0, false; !passed; cut += step {
				eventually(t, "a connection is ready", func() error {
					_, _, err := call()
					return err
				})
				p.cut(way, cut)
				n, pet, err := call()
				passed = p.disarm()
				var ids []int64
				if err := beside.QueryRow(t.Context(), "SELECT coalesce(array_agg(id), '{}') FROM pets WHERE category_id = $1", n).Scan(&ids); err != nil {
					t.Fatal(err)
				}
				switch {
				case err == nil && (len(ids) != 1 || ids[0] != pet.ID):
					t.Errorf("%s, cut after %d bytes %s: pet %d is acknowledged and %v are stored", name, cut, way, pet.ID, ids)
				case err != nil && !strings.Contains(err.Error(), "the outcome is unknown") && len(ids) > 0:
					t.Errorf("%s, cut after %d bytes %s: %v are stored, and the error is %v", name, cut, way, ids, err)
				case len(ids) > 1:
					t.Errorf("%s, cut after %d bytes %s: %v are stored", name, cut, way, ids)
				case name == "CreatePet" && err == nil && !passed:
					t.Errorf("%s, cut after %d bytes %s: it is acknowledged without the whole answer", name, cut, way)
				}
				if err != nil {
					checkUnavailable(t, err)
				}
				counts[fmt.Sprintf("error=%v stored=%d", err != nil, len(ids))]++
			}
			t.Log(name, way, counts)
		}
	}
}

// step is how many bytes are between two cuts. With 1, the test takes most of a minute.
const step = 11
