//go:build unix

package faults

// A count is what one subject's requests came to.
type count struct {
	subject          string
	limit            int64
	before           int64 // admitted before the fault
	hasty            int64 // of those, how many Redis may not have counted yet
	lost             int64 // of what Redis had counted, forgotten at most
	admitted, failed int64
	denied           int64
	counted          int64 // what Redis says in the end
	spared           bool  // the fault is another master's, and its own has decided in time
}

// A promise is about each subject. What a fault makes Redis forget is not held
// against it.
type promise struct {
	text  string
	holds func(count) bool
}

var (
	withinLimit = promise{
		"no subject above the limit",
		func(c count) bool { return c.admitted <= c.limit+c.lost },
	}
	withinLocalLimit = promise{
		"a subject that had used up its limit is denied, one that had used half gets the rest (and at most one more for each caller), others get less than 1.5 limits",
		func(c count) bool {
			known := c.before - c.hasty
			switch {
			case known >= c.limit:
				return c.admitted <= c.limit+c.lost+c.hasty
			case 2*known >= c.limit: // a caller may have an answer that is not yet noted
				return c.admitted <= c.limit+c.lost+c.hasty+callers
			}
			return 2*c.admitted < 3*c.limit+2*(c.lost+c.hasty)
		},
	}
	counted = promise{
		"all admitted requests are counted",
		func(c count) bool { return c.counted >= c.admitted-c.lost },
	}
	countedOnce = promise{
		"a request that got an error is counted at most once",
		func(c count) bool { return c.counted <= c.admitted+c.failed },
	}
	answered = promise{
		"no request fails",
		func(c count) bool { return c.failed == 0 },
	}
	elsewhere = promise{
		"subjects of the other masters are decided by Redis alone",
		func(c count) bool {
			return !c.spared || c.failed == 0 && c.admitted <= c.limit && c.admitted == c.counted
		},
	}
	deniedAtLimit = promise{
		"no request is denied before Redis has counted the whole limit",
		func(c count) bool { return c.denied == 0 || c.counted >= c.limit-c.lost },
	}
)
