package database

import (
	"errors"
	"regexp"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// host is the pattern of one host in a URL, with or without a port. It may be empty: then
// the host is in PGHOST, in the query, or the default.
const host = `(?:[\w.~%-]*|\[[\w:.%]+\])(?::\d*)?`

// postgresURL is the pattern of a URL of PostgreSQL. Its groups are the user, the password,
// the hosts, the path and the query. No part of a password can end up in another group: a
// character that would end the password too early leaves an @ where the pattern allows
// none.
var postgresURL = regexp.MustCompile(`^postgres(?:ql)?://(?:([^:@/?#\s]*)(?::([^/?#\s]*))?@)?(` + host + `(?:,` + host + `)*)(/[^/@?#\s]*)?(\?[^@#\s]*)?$`)

// keyword is how a connection string of libpq in its other form begins.
var keyword = regexp.MustCompile(`(?:^|\s)(?:host|hostaddr|port|dbname|user|password|service|passfile)\s*=`)

// IsPostgres reports whether name is a URL of PostgreSQL. Any other name is that of a
// SQLite file.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Check returns an error if name is neither the name of a file nor a URL of PostgreSQL.
// The error follows the name of the setting, and does not repeat name, which can have a
// password.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("must be a SQLite file such as petstore.db, or a postgres:// URL, got nothing")
	case strings.ContainsRune(name, 0):
		return errors.New("must not contain NUL")
	case IsPostgres(name) && !postgresURL.MatchString(name):
		return errors.New("must be a URL such as postgres://user:password@host:5432/database; " +
			"in the user, the password and the values after ? write other characters than letters, digits and - . _ ~ percent-encoded, such as %40 for @")
	case IsPostgres(name):
		return nil
	case strings.Contains(name, "://"):
		return errors.New("must be a SQLite file such as petstore.db, or a postgres:// URL, got another URL")
	case keyword.MatchString(name):
		return errors.New("must be a SQLite file such as petstore.db, or a postgres:// URL, got keywords and values")
	}
	return nil
}

// Redacted returns name for logs and messages. Of a URL it has the user, the hosts and the
// database, and neither the password nor what comes after a question mark.
func Redacted(name string) string {
	if !IsPostgres(name) {
		return name
	}
	scheme, _, _ := strings.Cut(name, "://")
	m := postgresURL.FindStringSubmatch(name)
	if m == nil {
		return scheme + "://[redacted]"
	}
	user := m[1]
	if user != "" {
		user += "@"
	}
	return scheme + "://" + user + m[3] + m[4]
}

// HasPassword reports whether name is a URL with a password.
func HasPassword(name string) bool {
	m := postgresURL.FindStringSubmatch(name)
	return m != nil && (m[2] != "" || strings.Contains(m[5], "password="))
}

// UsagePath returns the default path of the file with the usage of the embedded limiter:
// beside a SQLite file, and "" for PostgreSQL, which has no place for one.
func UsagePath(name string) string {
	if IsPostgres(name) {
		return ""
	}
	return sqlite.UsagePath(name)
}
