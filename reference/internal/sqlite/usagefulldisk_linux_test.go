package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A save for which there is no room stores nothing, and loses nothing that was stored.
func TestUsageOnAFullDisk(t *testing.T) {
	dir := mount(t)
	u, err := sqlite.OpenUsage(t.Context(), filepath.Join(dir, "usage"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close() // before the file system goes
	n := 0
	for err == nil {
		n++
		if err = saveRound(t.Context(), u, n); err == nil {
			err = u.CompactUsage(t.Context(), round(n).all)
		}
		if n == 5 {
			fillUp(t, dir, 64<<10)
		}
	}
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") || n < 5 {
		t.Fatalf("round %d on a full disk = %v, want an error that wraps ErrUnavailable and says so", n, err)
	}
	got, err := loadRound(t.Context(), u)
	if err != nil || got != n && got != n-1 {
		t.Errorf("round %d is stored (%v), want %d, which failed, or the one before", got, err, n)
	}
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"); err != nil {
		t.Fatal(err)
	}
	for n += 3; n < 300; n++ {
		if err := errors.Join(saveRound(t.Context(), u, n), u.CompactUsage(t.Context(), round(n).all)); err != nil {
			t.Fatalf("round %d when there is room again = %v", n, err)
		}
	}
	if got, err := loadRound(t.Context(), u); err != nil || got != n-1 {
		t.Errorf("round %d is stored (%v), want %d", got, err, n-1)
	}
}

// A conversion for which there is no room changes nothing.
func TestConvertUsageOnAFullDisk(t *testing.T) {
	dir := mount(t)
	path := filepath.Join(dir, "usage")
	sqlite.MakeFirstUsage(t, path, 2000)
	fillUp(t, dir, 16<<10)
	u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	if err == nil {
		u.Close()
	}
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("OpenUsage = %v, want an error that wraps ErrUnavailable and says that the disk is full", err)
	}
	os.Remove(filepath.Join(dir, "fill"))
	db := raw(t, path)
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM usage").Scan(&n); err != nil || n != 2000 {
		t.Errorf("%d records are left (%v), want all 2000", n, err)
	}
	db.Close()
	if u, err = sqlite.OpenUsage(t.Context(), path, sqlite.Options{}); err != nil {
		t.Fatalf("OpenUsage when there is room again = %v", err)
	}
	defer u.Close()
	if got := loadAll(t, u); len(got) != 2000 {
		t.Errorf("%d records were converted, want 2000", len(got))
	}
}
