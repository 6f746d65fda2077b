package observe

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// series holds the attributes of the series of a histogram, so that a measurement does
// not make them anew. There must be few keys.
type series[K comparable] struct {
	attributes func(K) []attribute.KeyValue

	mu    sync.Mutex
	known atomic.Pointer[map[K][]metric.RecordOption] // replaced, never changed
}

// of returns the attributes of a series.
func (s *series[K]) of(key K) []metric.RecordOption {
	if known := s.known.Load(); known != nil {
		if options, ok := (*known)[key]; ok {
			return options
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[K][]metric.RecordOption)
	if known := s.known.Load(); known != nil {
		maps.Copy(all, *known)
	}
	all[key] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(s.attributes(key)...))}
	s.known.Store(&all)
	return all[key]
}
