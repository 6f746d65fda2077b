package database_test

import (
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

func TestRedacted(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		password   bool
	}{
		{"petstore.db", "petstore.db", false},
		{"/var/lib/a:b@c/petstore.db", "/var/lib/a:b@c/petstore.db", false},
		{"postgres://db.example/pets", "postgres://db.example/pets", false},
		{"postgresql://ada@db.example:5432/pets", "postgresql://ada@db.example:5432/pets", false},
		{"postgres://ada:hush@db.example/pets", "postgres://ada@db.example/pets", true},
		{"postgres://ada:hush@a:1,b:2/pets?target_session_attrs=read-write", "postgres://ada@a:1,b:2/pets", true},
		{"postgres://ada:hush@[::1]:5432/pets", "postgres://ada@[::1]:5432/pets", true},
		{"postgres://db/pets?user=ada&password=hush&sslpassword=hush", "postgres://db/pets", true},
		{"postgres://db/pets?sslmode=disable", "postgres://db/pets", false},
		{"postgres://ada:hush@/pets?host=/run/postgresql", "postgres://ada@/pets", true},
		{"postgres://:hush@", "postgres://", true},
		{"postgres://ada:h@us@h@db/pets", "postgres://ada@db/pets", true},
		{"postgres://", "postgres://", false},
	} {
		if got, has := database.Redacted(tt.name), database.HasPassword(tt.name); got != tt.want || has != tt.password {
			t.Errorf("Redacted(%q) = %q, and HasPassword = %v, want %q and %v", tt.name, got, has, tt.want, tt.password)
		}
		if err := database.Check(tt.name); err != nil {
			t.Errorf("Check(%q) = %v", tt.name, err)
		}
	}
}

// Passwords that are not percent-encoded as they should be.
func TestPasswordsDoNotShow(t *testing.T) {
	const secret = "hush"
	for _, name := range []string{
		"postgres://ada:12/hush@db/pets", "postgres://ada:12/3/hush@db/pets", "postgres://ada:12?hush@db/pets", "postgres://ada:12#hush@db/pets",
		"postgres://ada:12/34?hush@db/pets", "postgres://ada:hu sh hush@db/pets", "postgres://ada:12@4/hush@db/pets",
		"postgres://db/pets?password=12@hush", "postgres://db/pets?password=hush#hush", "postgres://ada:hush", "postgres://ada@x:hush/pets",
		"postgres://ada:hush@db:port/pets", "postgres://ada:hush@db/pets?connect_timeout=soon", "mysql://ada:hush@db/pets", "host=db password=hush", "password = 'hush'",
	} {
		if got := database.Redacted(name); database.IsPostgres(name) && strings.Contains(got, secret) {
			t.Errorf("Redacted(%q) = %q, which has the password", name, got)
		}
		if err := database.Check(name); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Check(%q) = %v, want an error without the password", name, err)
		}
	}
}

func FuzzRedacted(f *testing.F) {
	for _, password := range []string{"a/b", "a?b", "a#b", "a@b", "1/2", "1,2", "[1]", "%", "1/2?3", ":", "a b"} {
		f.Add(password)
	}
	f.Fuzz(func(t *testing.T, password string) {
		const mark = "hush"
		for _, name := range []string{
			"postgres://ada:" + password + mark + "@db:5432/pets", "postgres://ada:" + mark + password + "@db:5432/pets?sslmode=disable",
			"postgres://db/pets?password=" + password + mark, "postgres://db/pets?sslpassword=" + mark + password,
		} {
			if got := database.Redacted(name); strings.Contains(got, mark) {
				t.Errorf("Redacted(%q) = %q, which has a part of the password", name, got)
			}
		}
	})
}
