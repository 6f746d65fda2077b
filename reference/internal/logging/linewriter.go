package logging

import "io"

// A lineWriter begins a new line if a part of a line was written before.
type lineWriter struct {
	to   io.Writer
	torn bool // what is written ends in a part of a line
}

// Write writes whole lines, and returns how many bytes of them were written.
func (w *lineWriter) Write(lines []byte) (int, error) {
	out := lines
	if w.torn {
		out = append([]byte("\n"), lines...)
	}
	n, err := w.to.Write(out)
	if n > 0 {
		w.torn = out[n-1] != '\n'
	}
	return max(n-(len(out)-len(lines)), 0), err
}
