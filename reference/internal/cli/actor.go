package cli

import (
	"os"
	"os/user"
	"strconv"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// actor returns the user of this process, for the audit log: "cli:ada@host".
func actor() store.Actor {
	name := "cli:" + userName()
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	if a := (store.Actor{Name: name}); a.Validate() == nil {
		return a
	}
	// A name that is too long or has control characters.
	return store.Actor{Name: "cli:uid " + strconv.Itoa(os.Getuid())}
}

func userName() string {
	// A container may run as a user without a name.
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}
