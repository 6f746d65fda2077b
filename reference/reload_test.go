package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// The lines of the log about a reload.
const (
	reloaded       = "reloaded the settings"
	refusedReload  = "refused the settings; those in force stay"
	changedSetting = "changed a setting"
)

// hangUp sends SIGHUP and waits for one more line with a message in the log, which it
// returns.
func (p *process) hangUp(t *testing.T, message string) map[string]any {
	t.Helper()
	before := len(p.logged(message))
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, message, func() bool { return len(p.logged(message)) > before })
	return p.logged(message)[before]
}

// settingsOf returns the lines with a message by their setting.
func (p *process) settingsOf(message string) map[any]map[string]any {
	lines := map[any]map[string]any{}
	for _, line := range p.logged(message) {
		lines[line["setting"]] = line
	}
	return lines
}

// A caller whose plan is raised is admitted on its next request, and keeps its usage
// and its ban.
func TestReloadOfPlans(t *testing.T) {
	for name, args := range map[string][]string{
		"embedded": nil,
		"Redis":    {"--redis=redis://" + miniredis.RunT(t).Addr()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const plan = "plans: {free: [%d/8784h], other: [1/8784h]}\npenalty: {strikes: 1, grace: 0s, ban: 1h, growth: 1, max: 1h, forgive: 1h}\n"
			writeFile(t, dir, "petstore.yaml", fmt.Sprintf(plan, 2))
			ada := petstore(t, dir, "keys", "create", "--name=n", "--owner=ada", "--plan=free", "--config=petstore.yaml")
			eve := petstore(t, dir, "keys", "create", "--name=n", "--owner=eve", "--plan=other", "--config=petstore.yaml")
			p := serve(t, dir, append(args, "--config=petstore.yaml")...)
			for range 2 {
				mustAsk(t, 200, "GET", p.api+"/v1/pets", ada, "")
			}
			mustAsk(t, 429, "GET", p.api+"/v1/pets", ada, "")
			mustAsk(t, 200, "GET", p.api+"/v1/pets", eve, "")
			for range 3 {
				mustAsk(t, 429, "GET", p.api+"/v1/pets", eve, "")
			}

			writeFile(t, dir, "petstore.yaml", strings.ReplaceAll(fmt.Sprintf(plan, 4), "1/8784h", "10/8784h"))
			p.hangUp(t, reloaded)
			if a := mustAsk(t, 200, "GET", p.api+"/v1/pets", ada, ""); a.header.Get("X-RateLimit-Limit") != "4" || a.header.Get("X-RateLimit-Remaining") != "1" {
				t.Errorf("after the plan was raised to 4, limit and remaining are %s and %s, want 4 and 1 after 3 requests",
					a.header.Get("X-RateLimit-Limit"), a.header.Get("X-RateLimit-Remaining"))
			}
			if a := mustAsk(t, 429, "GET", p.api+"/v1/pets", eve, ""); !strings.Contains(string(a.body), "api_key_banned") {
				t.Errorf("a ban has ended with a reload: %s", a.body)
			}
			line := p.settingsOf(changedSetting)["plans.free"]
			if line["old"] != "[2/31622400s]" || line["new"] != "[4/31622400s]" {
				t.Errorf("the log says %v about plans.free, want its old and its new quotas", line)
			}

			writeFile(t, dir, "petstore.yaml", fmt.Sprintf(plan, 3))
			p.hangUp(t, reloaded)
			mustAsk(t, 429, "GET", p.api+"/v1/pets", ada, "")
		})
	}
}

func TestReloadOfWhatClientsSee(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", "")
	key := roomyKey(t, dir, "ada")
	p := serve(t, dir, "--config=petstore.yaml")
	get := func(path string) answer { t.Helper(); return mustAsk(t, 200, "GET", p.api+path, key, "") }
	origin := func() string {
		r, err := http.NewRequestWithContext(t.Context(), "GET", p.api+"/openapi.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "https://app.example")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.Header.Get("Access-Control-Allow-Origin")
	}
	if a := get("/v1/usage"); a.header.Get("Deprecation") != "" || a.header.Get("RateLimit") != "" || origin() != "" {
		t.Fatalf("before the reload the server answers with %v", a.header)
	}
	tag := get("/openapi.json").header.Get("ETag")

	// Written under another name and renamed, without a signal.
	writeFile(t, dir, "new.yaml", "cors_origins: [https://app.example]\ndraft_headers: true\n"+
		"deprecations: {getUsage: {since: 2026-01-01, sunset: 2099-12-01}}\n")
	rename(t, dir, "new.yaml", "petstore.yaml")
	eventually(t, reloaded, func() bool { return len(p.logged(reloaded)) == 1 })
	if a := get("/v1/usage"); a.header.Get("Deprecation") == "" || a.header.Get("RateLimit") == "" || origin() != "https://app.example" {
		t.Errorf("after the reload the server answers with %v and allows the origin %q", a.header, origin())
	}
	if a := get("/openapi.json"); !strings.Contains(string(a.body), `"x-sunset":"2099-12-01"`) || a.header.Get("ETag") == tag {
		t.Error("after the reload /openapi.json is the old one")
	}
	if line := p.logged(reloaded)[0]; line["changed"] != 4.0 || line["need_restart"] != 0.0 || line["cause"] != "the file has changed" || line["file"] != "petstore.yaml" {
		t.Errorf("the log says %v, want 4 changes in the file", line)
	}
}

func TestReloadOfAccessLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", "")
	key := petstore(t, dir, "keys", "create", "--name=n", "--owner=ada", "--plan=enterprise", "--quota=1/8784h")
	p := serve(t, dir, "--config=petstore.yaml")
	mustAsk(t, 200, "GET", p.api+"/v1/pets", key, "")
	for _, step := range []struct {
		file   string
		status int
	}{
		{"deny: {owners: [ada]}", 403},
		{"allow: {owners: [ada]}", 200},
		{"deny: {networks: [127.0.0.0/8]}", 403},
		{"deny: {}", 429},
	} {
		writeFile(t, dir, "petstore.yaml", step.file)
		p.hangUp(t, reloaded)
		mustAsk(t, step.status, "GET", p.api+"/v1/pets", key, "")
	}
}

func TestReloadRefusesAMistake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", "draft_headers: true\n")
	p := serve(t, dir, "--config=petstore.yaml")
	header := func() string {
		return mustAsk(t, 401, "GET", p.api+"/v1/pets", "", "").header.Get("RateLimit")
	}
	for text, want := range map[string]string{
		"draft_headers: false\ncors_origins: [https://a.example]\nplans:\n  free: [60/minute, 1000/dya]\n": `petstore.yaml:4:21: plans.free[1]: quota "1000/dya": `,
		"draft_headers: false\ndeprecations: {getNothing: {since: 2025-12-05}}\n":                          "petstore.yaml:2:28: deprecations.getNothing: unknown operation",
		"draft_headers: [": "petstore.yaml:2:1: the file is not YAML: ",
		"":                 "petstore.yaml: the file is empty",
	} {
		writeFile(t, dir, "petstore.yaml", text)
		line := p.hangUp(t, refusedReload)
		if got, _ := line["error"].(string); line["level"] != "ERROR" || !strings.HasPrefix(got, want) {
			t.Errorf("the log says %v, want an error that begins with %q", line, want)
		}
		if header() == "" {
			t.Errorf("a file that was refused is in force: %q", text)
		}
	}

	// Without a signal, a mistake that stays is logged once.
	writeFile(t, dir, "petstore.yaml", "draft_headers: maybe\n")
	before := len(p.logged(refusedReload))
	eventually(t, refusedReload, func() bool { return len(p.logged(refusedReload)) > before })
	writeFile(t, dir, "petstore.yaml", "draft_headers: maybe\n")
	writeFile(t, dir, "other.yaml", "draft_headers: maybe\n")
	rename(t, dir, "other.yaml", "petstore.yaml")
	writeFile(t, dir, "petstore.yaml", "draft_headers: false\n")
	eventually(t, reloaded, func() bool { return len(p.logged(reloaded)) > 0 })
	if got := len(p.logged(refusedReload)) - before; got != 1 {
		t.Errorf("a mistake that stays is logged %d times, want once", got)
	}
	if header() != "" {
		t.Error("the file without a mistake is not in force")
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
