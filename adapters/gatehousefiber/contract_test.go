package gatehousefiber_test

import (
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// serve serves an app over a connection, and returns its address.
func serve(t *testing.T, app *fiber.App) (addr string) {
	t.Helper()
	listener := testcheck.Must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() { _ = listener.Close() }) // app.Shutdown would wait
	return listener.Addr().String()
}

func TestLimits(t *testing.T) {
	contract.TestLimits(t, contract.Service{NoAuth: true, Native: fiber.ErrUnauthorized, Start: func(t *testing.T, chain contract.Chain) func(contract.Request) contract.Answer {
		app := fiber.New()
		app.Use(fiberrecover.New())
		for _, l := range chain.Limits {
			if l.Refund {
				l.Options.ChargeIf = limit.NotServerError
			}
			app.Use(testcheck.Must(gatehousefiber.New(l.Engine, l.Identify, l.Options)))
		}
		app.Get("/:text", func(c fiber.Ctx) error {
			c.Status(chain.Handle(c.Context(), strings.Clone(c.Params("text"))))
			return nil
		})
		send := contract.SendTo(t, "http://"+serve(t, app))
		return func(r contract.Request) contract.Answer { return send(r.Method, "/"+r.Text, "") }
	}})
}
