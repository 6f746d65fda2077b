package compatibility

import (
	"io"
	"net"
	"os"
)

// fileListener accepts connections that notice when net/http hands them a file, for
// which the operating system has sendfile.
type fileListener struct {
	net.Listener
	c *cell
}

func (l *fileListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fileConn{conn.(*net.TCPConn), l.c}, nil
}

type fileConn struct {
	*net.TCPConn
	c *cell
}

func (conn *fileConn) ReadFrom(src io.Reader) (int64, error) {
	inner := src
	if limited, ok := src.(*io.LimitedReader); ok {
		inner = limited.R
	}
	if _, ok := inner.(interface{ Stat() (os.FileInfo, error) }); ok {
		conn.c.sent.Store(true)
	}
	return conn.TCPConn.ReadFrom(src)
}
