// Package console is the web page of the admin listener: what happens on the server now,
// and the bans in force, which an operator can end there.
//
//	files, err := console.New()
//	for _, f := range files {
//		handle(f.Path, f.ContentType, f.Body) // with webpage.Policy
//	}
//
// The files are static and hold no data. A script asks the JSON endpoints of package
// admin for it, with the admin token that the operator types in. It keeps the token in
// memory only. Names of owners are text that clients have chosen: the script writes them
// as text, with control characters made visible.
package console
