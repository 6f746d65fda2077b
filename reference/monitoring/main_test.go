package monitoring

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/animalstore/gatehouse/reference/internal/cli"
)

// The test binary is petstore if it is started under that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"petstore": func() { os.Exit(cli.Run(os.Args[1:])) },
	})
}
