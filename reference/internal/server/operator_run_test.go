package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// What an operator sees and may do follows the requests and the settings.
func TestAdminListenerFollowsTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "petstore.yaml")
	put(t, file, "plans: {small: [5/day]}\nanonymous: [1/8784h]\ndeprecations: {}\n")
	source := config.NewSource(config.Flags{Config: &file}, func(string) (string, bool) { return "", false })
	c, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	c.Database = filepath.Join(t.TempDir(), "petstore.db")
	l, hangUp := testListeners(t), make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := Options{Logger: slog.New(slog.DiscardHandler), Notice: io.Discard, Source: source, HangUp: hangUp, Build: build.Info{Version: "v1", Revision: "abc"}}
	go func() { ended <- runOn(ctx, c, o, l, open) }()

	var state admin.State
	getJSON := func(path string, out any) {
		t.Helper()
		status, body := l.get(t, path)
		if err := json.Unmarshal([]byte(body), out); err != nil || status != 200 {
			t.Fatalf("GET %s: %d %s, %v", path, status, body, err)
		}
	}
	for state.Report == nil || !state.Ready { // the start takes a moment
		state = admin.State{}
		getJSON("/state", &state)
	}
	if state.Build.Version != "v1" || state.Build.Revision != "abc" || state.Engine.Kind != "memory" || state.Engine.Capacity == 0 || state.Engine.Redis != nil ||
		state.Connections["admin"].Open == 0 || state.Settings.Last != nil {
		t.Errorf("GET /state: %+v with %+v, want the embedded engine, a connection to the admin listener and no reload", state, state.Report)
	}

	for _, want := range []int{401, 429, 429} {
		resp, err := http.Get("http://" + l.api.Addr().String() + "/v1/pets")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a request without a key: %d, want %d", resp.StatusCode, want)
		}
	}
	var top admin.Top
	getJSON("/top", &top)
	if d := top.Decisions; d.Allowed != 1 || d.Limited != 2 || len(top.Networks) != 1 || top.Networks[0] != (admin.Use{Network: "127.0.0.1/32", Allowed: 1, Denied: 2}) {
		t.Errorf("GET /top: %+v, want the three requests of 127.0.0.1", top)
	}

	createKey := func(plan string) int {
		t.Helper()
		resp, err := http.Post("http://"+l.admin.Addr().String()+"/keys", "application/json",
			strings.NewReader(`{"name":"n","owner":"ada","plan":"`+plan+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if small, large := createKey("small"), createKey("large"); small != 201 || large != 400 {
		t.Errorf("keys with the plans small and large: %d and %d, want that there is no plan large", small, large)
	}
	put(t, file, "plans: {small: [7/day], large: [9/day]}\ndeprecations: {getPet: {since: 2025-12-05, sunset: 2100-12-05}}\n")
	hangUp <- syscall.SIGHUP
	for state.Settings.Last == nil {
		getJSON("/state", &state)
	}
	if state.Settings.Applied != 1 || state.Settings.Error != "" {
		t.Errorf("GET /state after a reload: %+v, want that it was applied", state.Settings)
	}
	if large := createKey("large"); large != 201 {
		t.Errorf("a key with the new plan large: %d, want 201", large)
	}
	var usage admin.Usage
	getJSON("/usage?owner=ada", &usage)
	if len(usage.Plans) != 2 || usage.Plans[0].Quotas[0].Limit != 7 {
		t.Errorf("GET /usage: %+v, want both plans as they are now", usage)
	}
	var list struct{ Deprecations []admin.Deprecation }
	getJSON("/deprecations", &list)
	if len(list.Deprecations) != 1 || list.Deprecations[0].Operation != "getPet" {
		t.Errorf("GET /deprecations: %+v, want the one that was added", list)
	}
	put(t, file, "plans: {small: [x/day]}\n")
	hangUp <- syscall.SIGHUP
	for state.Settings.Refused == 0 {
		getJSON("/state", &state)
	}
	if !strings.Contains(state.Settings.Error, "petstore.yaml:1:") {
		t.Errorf("GET /state after a broken file: %+v, want where the mistake is", state.Settings)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("runOn = %v", err)
	}
}
