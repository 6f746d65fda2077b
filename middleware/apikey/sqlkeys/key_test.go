package sqlkeys_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/ratelimit"
)

// What needs a database is tested in reference/internal/database, with SQLite and PostgreSQL.

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// unreachable is a database that must not be asked.
type unreachable struct{}

func (unreachable) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("the database was asked")
}

// A key is refused if it could not be used.
func TestInvalidKeys(t *testing.T) {
	table := sqlkeys.NewSQLite(unreachable{})
	first, last := time.Time{}.Add(time.Microsecond), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	for name, change := range map[string]func(*sqlkeys.NewKey){
		"no digest":                 func(k *sqlkeys.NewKey) { k.Digest = apikey.Digest{} },
		"no owner":                  func(k *sqlkeys.NewKey) { k.Owner = "" },
		"no plan":                   func(k *sqlkeys.NewKey) { k.Plan = "" },
		"no creation":               func(k *sqlkeys.NewKey) { k.Created = time.Time{} },
		"creation too early":        func(k *sqlkeys.NewKey) { k.Created = first.Add(-1) },
		"creation before that":      func(k *sqlkeys.NewKey) { k.Created = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC) },
		"creation too late":         func(k *sqlkeys.NewKey) { k.Created = last.Add(1) },
		"a NUL":                     func(k *sqlkeys.NewKey) { k.Name = "a\x00" },
		"a NUL in the plan":         func(k *sqlkeys.NewKey) { k.Plan = "a\x00" },
		"an owner of other bytes":   func(k *sqlkeys.NewKey) { k.Owner = "\xff" },
		"a quota of other bytes":    func(k *sqlkeys.NewKey) { k.Quotas = []string{"\xc3", "\xa9"} },
		"a line end at its end":     func(k *sqlkeys.NewKey) { k.LastFour = "abc\n" },
		"three characters":          func(k *sqlkeys.NewKey) { k.LastFour = "abc" },
		"four bytes of two letters": func(k *sqlkeys.NewKey) { k.LastFour = "éé" },
		"expiry at once":            func(k *sqlkeys.NewKey) { k.Expires = k.Created.Add(999) },
		"expiry before creation":    func(k *sqlkeys.NewKey) { k.Expires = time.Time{}.Add(1) },
		"expiry too late":           func(k *sqlkeys.NewKey) { k.Expires = time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a limit that is no quota":  func(k *sqlkeys.NewKey) { k.Limits = []string{"100"} },
		"two limits of one window":  func(k *sqlkeys.NewKey) { k.Limits = []string{"1/minute", "2/60s"} },
		"five limits":               func(k *sqlkeys.NewKey) { k.Limits = []string{"1/1s", "2/2s", "3/3s", "4/4s", "5/5s"} },
	} {
		k := sqlkeys.NewKey{Digest: apikey.Digest{1}, LastFour: "abcd", Owner: "ada", Plan: "free", Created: noon}
		change(&k)
		if _, err := table.Create(t.Context(), k); !errors.Is(err, sqlkeys.ErrInvalid) || strings.Contains(err.Error(), "abc") {
			t.Errorf("Create of a key with %s = %v, want ErrInvalid without a part of the key", name, err)
		}
	}
	for name, k := range map[string]sqlkeys.NewKey{
		"name": {Name: "n"}, "owner": {Owner: "ada"}, "plan": {Plan: "free"}, "quotas": {Quotas: []string{"1/day"}}, "limits": {Limits: []string{"1/day"}},
	} {
		if _, _, err := table.Rotate(t.Context(), "key_1", k, 0); !errors.Is(err, sqlkeys.ErrInvalid) {
			t.Errorf("Rotate to a key with %s = %v, want ErrInvalid: the new key keeps what the old one has", name, err)
		}
	}
	for _, at := range []time.Time{{}, first.Add(-1), last.Add(1)} {
		if _, _, err := table.Revoke(t.Context(), "key_1", at); !errors.Is(err, sqlkeys.ErrInvalid) {
			t.Errorf("Revoke at %v = %v, want ErrInvalid", at, err)
		}
	}
}

// A fake is a driver that answers each statement with a row and an error.
type fake struct {
	driver.Connector
	driver.Conn
	args []driver.NamedValue
	row  []driver.Value
	err  error
	read bool // the row
}

func (f *fake) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fake) Columns() []string                            { return make([]string, len(f.row)) }
func (f *fake) Close() error                                 { return nil }
func (f *fake) QueryContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	f.args = args
	return &fake{row: f.row, err: f.err}, nil
}
func (f *fake) Next(row []driver.Value) error {
	if f.read {
		return f.err
	}
	f.read = true
	copy(row, f.row)
	return nil
}

// Any driver gets times as they are stored, and may return them in another zone. All that fails
// is an error, and leaves no connection in use.
func TestAnyDriver(t *testing.T) {
	zone := time.FixedZone("X", 3600)
	f := &fake{err: io.EOF, row: []driver.Value{"key_1", strings.Repeat("01", 32), "abcd", "", "ada", "free", "[]", "[]", noon.In(zone), nil, nil, nil}}
	db := sql.OpenDB(f)
	defer db.Close()
	table := sqlkeys.NewPostgreSQL(db)
	k, err := table.Create(t.Context(), sqlkeys.NewKey{Digest: apikey.Digest{1}, LastFour: "abcd", Owner: "ada", Plan: "free", Created: noon.Add(999).In(zone)})
	if err != nil || k.Created != noon || f.args[8].Value != noon {
		t.Errorf("Create stores the time %v and returns %v (%v), want noon in UTC", f.args[8].Value, k.Created, err)
	}
	f.err = errors.New("connection lost")
	if keys, err := table.List(t.Context(), ""); !errors.Is(err, f.err) {
		t.Errorf("List of rows that fail = %v, %v, want an error", keys, err)
	}
	f.row[8] = "12:00"
	if keys, err := table.List(t.Context(), ""); err == nil || !strings.Contains(err.Error(), `key "key_1"`) || db.Stats().InUse != 0 {
		t.Errorf("List of a time that is a text = %v, %v with %d connections in use, want an error that names the key", keys, err, db.Stats().InUse)
	}
}

// The verifier gets the plan that the service has for a key, and its limits.
func TestNewStore(t *testing.T) {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	stored := sqlkeys.Key{ID: "key_1", NewKey: sqlkeys.NewKey{Owner: "ada", Plan: "free", Quotas: []string{"9/minute"}, Limits: []string{"3/minute"}, Expires: noon}, Revoked: noon.Add(1)}
	lookUp := func(k sqlkeys.Key, err error) (apikey.Record[apikey.Principal], error) {
		find := func(context.Context, apikey.Digest) (sqlkeys.Key, error) { return k, err }
		return sqlkeys.NewStore(find, nil, func(name string, quotas []string) (*ratelimit.Plan, error) {
			if name == "free" && slices.Equal(quotas, k.Quotas) {
				return free, nil
			}
			return nil, nil
		}).Lookup(t.Context(), apikey.Digest{1})
	}
	r, err := lookUp(stored, nil)
	if p := r.Principal; err != nil || p.KeyID != "key_1" || p.Owner != "ada" || p.Plan != free || fmt.Sprint(p.Limits.Quotas()) != "[3/minute]" ||
		p.Limits.Penalty() != (ratelimit.Penalty{}) || p.Limits.Scope() != "API key" || r.Expires != noon || r.Revoked != noon.Add(1) {
		t.Errorf("the record is %+v, %v", r, err)
	}
	if _, err := lookUp(sqlkeys.Key{}, fmt.Errorf("find: %w", sqlkeys.ErrNotFound)); !errors.Is(err, apikey.ErrUnknown) {
		t.Errorf("Lookup of no key = %v, want apikey.ErrUnknown", err)
	}
	for name, change := range map[string]func(*sqlkeys.Key){
		"plan":  func(k *sqlkeys.Key) { k.Plan = "gone" },
		"limit": func(k *sqlkeys.Key) { k.Limits = []string{"x"} },
	} {
		k := stored
		change(&k)
		if _, err := lookUp(k, nil); err == nil || errors.Is(err, apikey.ErrUnknown) || !strings.Contains(err.Error(), "key_1") {
			t.Errorf("Lookup of a key with an unknown %s = %v, want an error that names the key", name, err)
		}
	}
}

// A look-up notes that a key is used, once a minute and in the background: one key at a time, and
// again if that fails.
func TestNotingUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := map[apikey.Digest]*sqlkeys.Key{}
		for i, k := range []sqlkeys.Key{{ID: "ann"}, {ID: "bob"}, {ID: "revoked", Revoked: time.Now()}, {ID: "fresh", LastUsed: time.Now().Add(-time.Minute + 1)}} {
			keys[apikey.Digest{byte(i)}] = &k
		}
		free, failing := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60)), true
		var mu sync.Mutex // of keys and noted
		var noted []string
		store := sqlkeys.NewStore(func(_ context.Context, d apikey.Digest) (sqlkeys.Key, error) {
			mu.Lock()
			defer mu.Unlock()
			return *keys[d], nil
		},
			func(ctx context.Context, id string, at time.Time) error {
				mu.Lock()
				noted = append(noted, id)
				mu.Unlock()
				if end, _ := ctx.Deadline(); time.Until(end) <= 0 {
					t.Errorf("the time to note the use of %s is over before it begins", id)
				}
				if failing {
					<-ctx.Done()
					if id == "bob" {
						panic("a driver panics")
					}
					return ctx.Err()
				}
				mu.Lock()
				defer mu.Unlock()
				for _, k := range keys {
					if k.ID == id {
						k.LastUsed = at
					}
				}
				return nil
			}, func(string, []string) (*ratelimit.Plan, error) { return free, nil })
		lookUpAll := func(times int) {
			ctx, cancel := context.WithCancel(t.Context())
			for range times {
				for d := range keys {
					if _, err := store.Lookup(ctx, d); err != nil {
						t.Fatal(err)
					}
				}
			}
			cancel() // the request has ended
			synctest.Wait()
		}
		want := func(when string, names ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if slices.Sort(noted); !slices.Equal(noted, names) {
				t.Errorf("%s the use of %q was noted, want %q", when, noted, names)
			}
			noted = nil
		}
		lookUpAll(2)
		mu.Lock()
		if len(noted) != 1 {
			t.Errorf("while the first note waits, the store was told of %q, want one key at a time", noted)
		}
		mu.Unlock()
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		want("when the store fails,", "ann", "bob")
		failing = false
		lookUpAll(1)
		want("when it works again,", "ann", "bob", "fresh")
		time.Sleep(time.Minute - time.Nanosecond)
		lookUpAll(1)
		want("less than a minute later")
		time.Sleep(time.Nanosecond)
		lookUpAll(1)
		want("a minute later", "ann", "bob", "fresh")
	})
}
