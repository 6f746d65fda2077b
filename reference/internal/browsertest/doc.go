// Package browsertest runs the web pages of the server in headless Chromium.
//
//	page := browsertest.Open(t, url)
//	page.Click(t, "#getPet .send button")
//	page.WaitText(t, "#getPet .answer", "200 OK")
//
// A test fails, at its end at the latest, if the page writes an error or a warning to the
// console, throws, violates its Content-Security-Policy, sends a request to another
// origin, or stores anything.
//
// Without Chromium the tests are skipped, or fail if the environment has
// GATEHOUSE_REQUIRE_SERVERS=1. With -screenshots DIR, [Page.Screenshots] writes what the
// page looks like.
package browsertest
