package compatibility

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
)

// dial opens a connection for HTTP/1.1 and sends lines. Host and the fields that all
// requests have come after the first.
func (c *cell) dial(lines ...string) (net.Conn, *bufio.Reader) {
	address := strings.TrimPrefix(c.url, "http://")
	conn := must(net.Dial("tcp", address))
	text := lines[0] + "\r\nHost: " + address + "\r\nAuthorization: Bearer " + apiKey + "\r\nX-Request-Id: " + requestID + "\r\n" +
		strings.Join(lines[1:], "\r\n")
	_, _ = io.WriteString(conn, strings.TrimSuffix(text, "\r\n")+"\r\n")
	return conn, bufio.NewReader(conn)
}

// raw sends lines on a connection of its own and notes the response.
func (c *cell) raw(lines ...string) {
	conn, in := c.dial(lines...)
	defer conn.Close()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		c.received("no response")
		return
	}
	c.header(resp)
	c.whole(resp)
}

// Types and flags of HTTP/2 frames (RFC 9113 section 6).
const (
	frameData        = 0x0
	frameHeaders     = 0x1
	frameSettings    = 0x4
	framePushPromise = 0x5
	endStream        = 0x1
	endHeaders       = 0x4
)

// takePushes sends GET / over HTTP/2 as a client that takes pushes, which that of
// net/http never does, and notes how many are promised before the response ends.
func takePushes(c *cell) {
	config := c.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	config.ServerName = "example.com" // in the certificate of httptest
	conn := must(tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), config))
	defer conn.Close()

	// Fields as literals that are never indexed, in HPACK (RFC 7541 section 6.2.2).
	block := []byte{0x82, 0x84, 0x87} // GET, /, https
	for _, f := range [][2]string{{":authority", "example.com"}, {"authorization", "Bearer " + apiKey}, {"x-request-id", requestID}} {
		block = append(block, 0x00, byte(len(f[0])))
		block = append(block, f[0]...)
		block = append(block, byte(len(f[1])))
		block = append(block, f[1]...)
	}
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	_, _ = conn.Write(frame(frameSettings, 0, 0, nil))
	_, _ = conn.Write(frame(frameHeaders, endStream|endHeaders, 1, block))

	promises := 0
	for in := bufio.NewReader(conn); ; {
		var header [9]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			c.received("the connection ended: %v", err)
			return
		}
		length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		_, _ = io.CopyN(io.Discard, in, length)
		kind, flags, stream := header[3], header[4], binary.BigEndian.Uint32(header[5:])
		if kind == framePushPromise {
			promises++
		}
		if stream == 1 && flags&endStream != 0 && (kind == frameData || kind == frameHeaders) {
			break
		}
	}
	if promises == 1 {
		c.received("one PUSH_PROMISE")
	} else {
		c.received("%d PUSH_PROMISEs", promises)
	}
}

// frame returns an HTTP/2 frame (RFC 9113 section 4.1).
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	f := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(f, stream), payload...)
}
