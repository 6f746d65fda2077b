package main_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// However often the settings are reloaded, no request fails.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	file := func(i int) string {
		return fmt.Sprintf("max_connections: %d\ndraft_headers: %v\nuncharged: [%d/minute]\ntimeouts: {drain: %ds}\n", 100+i, i%2 == 0, 1000+i, 60+i/2)
	}
	writeFile(t, dir, "petstore.yaml", file(0))
	p := serve(t, dir, "--config=petstore.yaml")
	var asked, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if a, err := ask(t.Context(), "POST", p.api+"/v1/pets", key, pet); err != nil || a.status != 201 {
					failed.Add(1)
					t.Errorf("a request during a reload: %d, %v", a.status, err)
				}
				asked.Add(1)
			}
		})
	}
	for i := range 20 {
		writeFile(t, dir, "petstore.yaml", file(i+1))
		p.hangUp(t, reloaded)
	}
	stop()
	clients.Wait()
	if n := used(t, p, key); n != asked.Load() {
		t.Errorf("%d requests are counted of %d", n, asked.Load())
	}
}
