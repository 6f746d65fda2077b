package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A petstore is a running server with files of its own.
type petstore struct {
	*process
	api, admin string // addresses
	bench      *bench
	dir        string
	key        string // of an owner whose quota nothing here uses up
}

// settings are those of a server that a test does not change: quotas that last, so that
// only those requests are limited that should be, and no bans for the many requests that
// are limited on purpose.
const settings = `penalty: {grace: 1h}
max_connections: 16384
timeouts: {idle: 10m}
`

// roomyNetworks are settings with which no caller without a key is limited.
const roomyNetworks = "anonymous: [" + roomy + "]\n"

// manyNetworks are settings with which requests can come from any number of networks.
const manyNetworks = "trusted_proxies: [127.0.0.1]\n"

// roomy is a quota that nothing here uses up.
const roomy = "1000000000/8784h"

// newDir makes a directory for a server, with its settings and further ones.
func (b *bench) newDir(more string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "petstore")
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "petstore.yaml"), []byte(settings+more), 0o600)
}

// newPetstore starts a server with a new database and a key.
func (b *bench) newPetstore(more string) (*petstore, error) {
	dir, err := b.newDir(more)
	if err != nil {
		return nil, err
	}
	key, err := b.newKey(dir, "ann", roomy)
	if err != nil {
		return nil, err
	}
	return b.startPetstore(dir, key)
}

// newKey creates a key in the database of a directory.
func (b *bench) newKey(dir, owner, quota string) (string, error) {
	key, err := b.command(dir, b.binary, "keys", "create", "--config", "petstore.yaml",
		"--name", "benchmark", "--owner", owner, "--plan", "enterprise", "--quota", quota)
	return strings.TrimSpace(key), err
}

// startPetstore starts a server in a directory, and returns when it serves.
func (b *bench) startPetstore(dir, key string) (*petstore, error) {
	// The log goes to a file, as in production. It can be emptied while it is appended to.
	log, err := os.OpenFile(filepath.Join(dir, "petstore.log"), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &petstore{bench: b, dir: dir, key: key}
	if s.process, err = b.start("petstore", dir, nil, log, b.binary, "serve", "--config", "petstore.yaml",
		"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		select {
		case <-s.ended:
			return nil, fmt.Errorf("petstore ended instead of serving: %w", s.failed(s.err))
		default:
		}
		text, err := os.ReadFile(log.Name())
		if err != nil {
			return nil, err
		}
		if s.api, s.admin = serving(text); s.api != "" {
			return s, nil
		}
		if time.Since(begun) > patience {
			return nil, fmt.Errorf("petstore does not serve after %v\n%s", patience, s.out)
		}
	}
}

// serving returns the addresses in the line of a log which says that the server serves.
func serving(log []byte) (api, admin string) {
	for text := range bytes.Lines(log) {
		var line struct{ Msg, API, Admin string }
		if json.Unmarshal(text, &line) == nil && line.Msg == "serving" {
			return strings.TrimPrefix(line.API, "http://"), strings.TrimPrefix(line.Admin, "http://")
		}
	}
	return "", ""
}

// emptyLog deletes the lines of the log, which would fill the disk.
func (s *petstore) emptyLog() error { return os.Truncate(filepath.Join(s.dir, "petstore.log"), 0) }

// addPets creates pets, one request at a time.
func (s *petstore) addPets(n int) error {
	for range n {
		if _, _, err := exchange(s.api, post(s.key)); err != nil {
			return err
		}
	}
	return nil
}

// command runs a command of petstore that asks this server.
func (s *petstore) command(args ...string) error {
	_, err := s.bench.command(s.dir, append(append([]string{s.bench.binary}, args...), "--admin-listen", s.admin)...)
	return err
}

// settle waits until the server uses less than a twentieth of a processor.
func (s *petstore) settle(ctx context.Context) error {
	const period = 500 * time.Millisecond
	for begun := time.Now(); ; {
		before, err := s.processorTime()
		if err != nil {
			return err
		}
		if !pause(ctx, period) {
			return ctx.Err()
		}
		after, err := s.processorTime()
		if err != nil || after-before < period/20 {
			return err
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("%s still works %v after it was left alone", s.name, patience)
		}
	}
}
