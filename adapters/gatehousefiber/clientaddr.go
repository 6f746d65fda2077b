package gatehousefiber

import (
	"net/netip"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// ClientAddr returns the address of the client that sent a request through the proxies
// that source trusts, for clientip.NetworkSubject. It needs no setting of Fiber.
func ClientAddr(c fiber.Ctx, source *clientip.Source) netip.Addr {
	peer, _ := netip.AddrFromSlice(c.RequestCtx().RemoteIP())
	return source.AddrFrom(peer, func(name string) []string {
		var lines []string
		for _, line := range c.Request().Header.PeekAll(name) {
			lines = append(lines, string(line))
		}
		return lines
	})
}
