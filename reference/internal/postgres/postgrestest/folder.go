//go:build unix

package postgrestest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

const (
	// user and password are those of every server. The password is easy to find in
	// what a test prints.
	userName = "postgres"
	password = "pass-Wort-4711"
)

// A dataFolder is a directory that is removed when this process ends, however it ends.
type dataFolder struct {
	path  string
	alive io.Closer // closed by the end of this process, and kept from the garbage collector here
}

// folder returns the directory with the data of all servers of this test binary.
var folder = sync.OnceValues(makeFolder)

func makeFolder() (f dataFolder, err error) {
	if f.path, err = os.MkdirTemp("", "postgrestest"); err != nil {
		return f, err
	}
	if c := unprivileged(); c != nil {
		if err := os.Chown(f.path, int(c.Uid), int(c.Gid)); err != nil {
			return f, err
		}
	}
	// A shared server has no test at whose end it could be removed. The shell reads until
	// the end of this process closes the pipe. Then the servers may still be stopping.
	janitor := exec.Command("/bin/sh", "-c", `read _; for i in 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && exit; sleep 1; done`, "sh", f.path)
	if f.alive, err = janitor.StdinPipe(); err != nil {
		return f, err
	}
	janitor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // survives an interrupt of the test
	return f, janitor.Start()
}

// writeFile writes a file that the user of the servers can read, whatever the umask is.
func writeFile(path, text string) error {
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o644))
}

// template returns the data directory of a server that has never run. A copy of it is
// ready ten times sooner than initdb.
var template = sync.OnceValues(makeTemplate)

func makeTemplate() (string, error) {
	base, err := folder()
	if err != nil {
		return "", err
	}
	dir, passwordFile := filepath.Join(base.path, "template"), filepath.Join(base.path, "password")
	if err := writeFile(passwordFile, password+"\n"); err != nil {
		return "", err
	}
	args := []string{
		"--pgdata", dir, "--username", userName, "--pwfile", passwordFile, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions",
	}
	// Texts are ordered as a person would, so that a test notices a statement that needs
	// the order of bytes and does not say so. Old versions lack that.
	icu := append([]string{"--locale-provider", "icu", "--icu-locale", "en-US"}, args...)
	if command("initdb", icu...).Run() == nil {
		return dir, nil
	}
	if out, err := command("initdb", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	return dir, nil
}

// newData returns a new data directory.
func newData() (string, error) {
	from, err := template()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(from), "data"+strconv.FormatInt(count.Add(1), 10))
	if out, err := exec.Command("cp", "-a", from, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy the template: %w: %s", err, out)
	}
	return dir, nil
}
