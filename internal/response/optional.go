package response

import "net/http"

// below returns the first ResponseWriter under t that implements T. It looks through
// those that have an Unwrap method, as [http.ResponseController] does.
func below[T any](t *Tracker) (found T, ok bool) {
	for w := t.rw; ; {
		if found, ok = w.(T); ok {
			return found, true
		}
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return found, false
		}
		w = u.Unwrap()
	}
}

// Push implements [http.Pusher], which ResponseController does not know. It returns
// [http.ErrNotSupported] over HTTP/1, and if the client takes no pushes.
func (t *Tracker) Push(target string, opts *http.PushOptions) error {
	if p, ok := below[http.Pusher](t); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// CloseNotify implements http.CloseNotifier. The context of a request is better, but
// Context.Stream of gin panics without CloseNotify. The channel never receives if no
// ResponseWriter below has one.
func (t *Tracker) CloseNotify() <-chan bool {
	type notifier interface{ CloseNotify() <-chan bool } // http.CloseNotifier is deprecated
	if n, ok := below[notifier](t); ok {
		return n.CloseNotify()
	}
	return nil
}
