package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADeletedDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serve(t, dir)
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, pet)
	path := filepath.Join(dir, "petstore.db")
	must(t, os.Rename(path, path+".moved"))
	a := mustAsk(t, 503, "POST", p.api+"/v1/pets", key, pet)
	if a.header.Get("Retry-After") == "" || strings.Contains(string(a.body), "petstore.db") {
		t.Errorf("the answer has Retry-After %q and the body %s, want one and no file name", a.header.Get("Retry-After"), a.body)
	}
	if a := mustAsk(t, 503, "GET", p.admin+"/readyz", "", ""); !strings.Contains(string(a.body), "was deleted while this process has it open") {
		t.Errorf("readiness says %s, want that the file was deleted", a.body)
	}
	eventually(t, "the log says what to do", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, line := range p.log {
			for _, value := range line {
				if text, ok := value.(string); ok && strings.Contains(text, "put the original file back, or restart") {
					return true
				}
			}
		}
		return false
	})
	must(t, os.Rename(path+".moved", path))
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, pet)
	mustAsk(t, 200, "GET", p.admin+"/readyz", "", "")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
