package console

import (
	"cmp"
	"slices"
	"time"
)

// A Deprecation is a deprecated operation, as in deprecation.Options: times are in the years 1 to
// 9999. Zero times and "" are not known.
type Deprecation struct {
	Operation string    `json:"operation"`
	Since     time.Time `json:"since,omitzero"`
	Sunset    time.Time `json:"sunset,omitzero"`
	Successor string    `json:"successor,omitempty"`

	// Users are counted by the service. Nil: [Console.DeprecatedUse] counts them.
	Users []User `json:"users"`
}

// A User is a subject that has used a deprecated operation.
type User struct {
	Subject  string    `json:"subject"`
	Requests int64     `json:"requests"`
	Last     time.Time `json:"last"` // when the latest of them came
}

const maxUsers = 10_000

// DeprecatedUse counts a request of a subject, such as "user:ann", for a deprecated operation. Call
// it in OnUse of deprecation.Options. A Console holds the first ten thousand pairs of an operation
// and a subject.
func (c *Console) DeprecatedUse(operation, subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{operation, subject}
	if u, known := c.users[key]; known || len(c.users) < maxUsers {
		c.users[key] = User{subject, u.Requests + 1, time.Now().UTC()}
	}
}

// usersOf returns the users of an operation, those with the most requests first.
func (c *Console) usersOf(operation string) []User {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []User{}
	for key, user := range c.users {
		if key[0] == operation {
			list = append(list, user)
		}
	}
	slices.SortFunc(list, func(x, y User) int {
		return cmp.Or(cmp.Compare(y.Requests, x.Requests), cmp.Compare(x.Subject, y.Subject))
	})
	return list
}
