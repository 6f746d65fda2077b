// Package webpage has what the web pages of the server share: their files as the
// handlers serve them, their Content-Security-Policy, and the files that every page
// uses, a stylesheet, a script module and an icon.
//
//	//go:embed files
//	var own embed.FS
//
//	files, err := webpage.Files("/docs", own) // /docs/docs.js, /docs/base.css, …
//	for _, f := range files {
//		handle(f.Path, f.ContentType, f.Body) // with webpage.Policy
//	}
//
// The pages work from the binary alone: no page loads anything from another origin,
// which [Policy] also forbids.
package webpage
