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
	return source.AddrFrom(peer, func(name string) []string { return linesOf(c, name) })
}

// linesOf returns the values of a field of the request, one for each line.
func linesOf(c fiber.Ctx, name string) (lines []string) {
	for _, line := range c.Request().Header.PeekAll(name) {
		lines = append(lines, string(line))
	}
	return lines
}
