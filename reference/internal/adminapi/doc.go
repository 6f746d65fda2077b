// Package adminapi has the requests and answers of the admin listener in JSON, and its
// client. Package admin serves them.
//
//	client := adminapi.Client{Addr: "127.0.0.1:9090", Token: token}
//	bans, err := client.Bans(ctx)
//
// Errors wrap [ErrNoAnswer] or [ErrToken], or have the text that the server answered with.
package adminapi
