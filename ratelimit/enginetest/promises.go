package enginetest

// A promise is what an engine promises, and its test.
type promise struct {
	name       string
	text       string          // a sentence, for failures
	needsClock bool            // the clock of the engine must be settable
	excluded   func(Gaps) bool // whether an engine with these gaps does not make it
	test       func(*engineTest)
}

var promises = []promise{
	{name: "admits exactly the limit", test: testExactLimit,
		text: "requests up to the limit are admitted, each of which leaves one less, and further ones are limited"},
	{name: "keeps subjects apart", test: testSubjectsApart,
		text: "each subject has usage of its own, whatever its name"},
	{name: "refuses wrong calls", test: testWrongCalls,
		text: "Take with a wrong plan, subject or cost is an error that wraps ErrInvalid, and charges nothing"},
	{name: "refuses calls without a subject", test: testNoSubject,
		text: "every call without a subject is an error that wraps ErrInvalid"},
	{name: "does not count plans without quotas", test: testUnmetered,
		text: "a plan without quotas decides alone, and changes no usage"},
	{name: "admits exactly the limit to concurrent callers", test: testConcurrent,
		text: "concurrent requests are admitted up to the limit exactly"},
	{name: "counts beyond a soft limit", test: testSoft,
		text: "a soft quota counts every request and refuses none, also of a cost over its limit, and its usage counts once it is hard"},
	{name: "charges the cost or nothing", test: testCost, excluded: func(g Gaps) bool { return g.ChargesDenials },
		text: "a request is charged its whole cost, or denied and charged nothing"},
	{name: "admits a client that waited", test: testRetryAfter, needsClock: true,
		text: "a client that waits for Retry-After is admitted"},
	{name: "keeps open windows when the clock steps back", test: testClockBack, needsClock: true, excluded: func(g Gaps) bool { return g.RollingWindows || g.ChargesDenials || g.OneQuota },
		text: "a clock that steps back grants nothing of an open window twice, and locks a client out for two windows at most"},
	{name: "refuses quotas that it cannot count", test: testUncountable, excluded: func(g Gaps) bool { return !g.NoCalendars && !g.NoSmooth },
		text: "a plan with calendar windows or a smooth quota is an error that wraps ErrInvalid"},
	{name: "lengthens no ban when the clock steps back", test: testBanClockBack, needsClock: true, excluded: noPenalty,
		text: "a clock that steps back makes no ban longer"},
	{name: "never bans a client that backs off", test: testBackoff, needsClock: true, excluded: noPenalty,
		text: "a client that doubles its pauses, or waits for Decay between its requests, is never banned"},
	{name: "says how many requests are safe", test: testWarning, needsClock: true, excluded: noPenalty,
		text: "StrikesLeft further requests start no ban at any pace, and one more in quick succession does"},
	{name: "peeks without a trace", test: testPeek,
		text: "Peek reports the decision that a request would get, charges nothing and is not a strike"},
	{name: "resets", test: testReset,
		text: "Reset forgets one subject and no other"},
	{name: "refuses wrong groups of charges", test: testWrongGroups,
		text: "TakeAll with a wrong charge, or with a subject twice, is an error that wraps ErrInvalid, and charges nothing"},
	{name: "admits exactly the limit to concurrent groups", test: testConcurrentGroups,
		text: "concurrent groups that share a subject are admitted up to its limit exactly, and a refused group is charged to no subject"},
	{name: "bans and unbans by hand", test: testBanByHand,
		text: "Ban and Unban act immediately, and Bans lists the bans in force"},
}

func noPenalty(g Gaps) bool { return g.NoPenalties }
