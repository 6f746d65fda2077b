// Package keys creates, lists, revokes and rotates API keys for an operator. The command
// line and the admin listener use it, so that both have the same rules and the same
// errors.
//
//	manager := keys.Manager{Store: db, Plan: settings.Plans.Of, Actor: store.Actor{Name: "admin"}}
//	issued, err := manager.Create(ctx, keys.New{Name: "web shop", Owner: "ada", Plan: "pro"})
//	fmt.Println(issued.Secret) // it is not shown again
//
// Its types are also what the admin listener receives and sends in JSON.
package keys
