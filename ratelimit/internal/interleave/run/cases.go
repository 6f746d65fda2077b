package main

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Penalties of the plans: one bans at the second strike, the other strikes for nothing
// within two seconds of the first limited request.
var (
	penalty = ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour}
	patient = ratelimit.Penalty{Strikes: 1, Grace: 2 * time.Second, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour}
)

var (
	drops = ratelimit.PerMinute(6).Smooth(2) // two units at once, and one more every ten seconds
	huge  = ratelimit.MustPlan("huge", penalty, ratelimit.PerMinute(1<<33), ratelimit.PerDay(1<<33))
	large = ratelimit.MustPlan("large", penalty, ratelimit.PerMinute(10), ratelimit.PerDay(20))
	plans = byName(
		large,
		huge,
		ratelimit.MustPlan("hour", penalty, ratelimit.PerHour(20)),
		ratelimit.MustPlan("day", penalty, ratelimit.PerDay(20)),
		ratelimit.MustPlan("two", penalty, ratelimit.PerMinute(2), ratelimit.PerDay(4)),
		ratelimit.MustPlan("other", penalty, ratelimit.PerHour(3), ratelimit.Quota{Limit: 5, Window: 7 * 24 * time.Hour}),
		ratelimit.MustPlan("wide", penalty, ratelimit.PerMinute(2), ratelimit.PerHour(3), ratelimit.PerDay(4)),
		ratelimit.MustPlan("graceful", patient, ratelimit.PerMinute(2), ratelimit.PerDay(4)),
		ratelimit.MustPlan("smooth", penalty, drops),
		ratelimit.MustPlan("mixed", penalty, drops, ratelimit.PerDay(4)),
		ratelimit.MustPlan("faster", penalty, ratelimit.PerMinute(12).Smooth(3), ratelimit.PerDay(5)),
		ratelimit.MustPlan("double", penalty, drops, ratelimit.PerHour(60).Smooth(3)),
		ratelimit.MustPlan("deep", penalty, ratelimit.PerMinute(6).Smooth(4)), // a unit is less than half
		ratelimit.MustPlan("lenient", patient, drops, ratelimit.PerDay(4)),
	)
)

func byName(all ...*ratelimit.Plan) map[string]*ratelimit.Plan {
	m := map[string]*ratelimit.Plan{}
	for _, p := range all {
		m[p.Name()] = p
	}
	return m
}

// A row is a case as text; see parse.
type row struct{ name, text string }

var cases = []row{
	// Requests for one subject.
	{"two takes, one unit left", "take a two => take a two | take a two"},
	{"three takes, two units left", "take a wide => take a wide | take a wide | take a wide"},
	{"takes of different cost", "=> take 2 a two, take a two | take a two, take a two"},
	{"two takes of a new subject", "=> take a two | take a two"},
	{"two takes of two new subjects", "=> take a two, take b two | take b two, take a two"},
	{"two takes while a window begins", "take a two, take a two => take a two | take a two | clock 2s"},
	{"takes of one caller while a window begins", "take a two => take a two, take a two | clock 2s, take a two"},
	{"two takes while the clock steps back", "clock 2s, take a two => take a two | take a two | clock -2s"},
	{"two first requests of a window", "take a two, clock 2s => take a two, take a two | take a two"},
	{"a first request of a window beside a ban", "take a two, clock 2s => take a two | ban a | take a two"},
	{"a first request of a window beside a plan switch", "take a two, clock 2s => take a two | take a wide | take a two"},
	{"a first request of a window beside a refund and a save", "take a two, clock 2s => take a two, refund a | save"},
	{"a first request of a window beside a reset, and a new subject in its slot", "take first large, take second large, clock 2s => reset first, take third large | take first large | take second large"},
	{"a plan switch beside a take", "take a two => take a other | take a two"},
	{"a plan switch beside a take, after a refund", "take a two, refund a => take a other | take a two"},
	{"a plan switch beside a take, with one window more", "take a two => take a wide | take a two, take a two"},
	{"a take with a window of another plan beside a reset", "take a two => take a day | reset a, take a day"},

	// What is done to usage beside requests.
	{"a refund beside a take", "take a two, take a two => refund a | take a two"},
	{"a refund of all beside two takes", "take 2 a two => refund a | take a two, take a two"},
	{"a refund beside a plan switch", "take a two => refund a | take a other | take a two"},
	{"a charge beside a take", "take a two => charge 1 a two | take a two"},
	{"a charge beside a take of a new subject", "=> charge 2 a two | take a two"},
	{"a charge beside a refund and a take", "take a two => charge 1 a two | refund a | take a two"},
	{"a peek beside a take", "take a two => peek a two, peek a two | take a two"},
	{"a reset beside two takes", "take a two => reset a | take a two, take a two"},
	{"a reset beside a plan switch", "take a two => reset a | take a wide | take a two"},
	{"a save beside two takes", "take a two => save | take a two, take a two"},
	{"a save beside a reset and a take", "take a two, save => save | reset a | take a two"},

	// Slots that move, in their table or to another one.
	{"a reset of the subject in front", "take first large, take second large, take third large => reset first | take second large, take second large | take third large"},
	{"resets of two subjects in front", "take first large, take second large, take third large => reset first, reset second | take third large, take third large"},
	{"a reset, and a new subject in its slot", "take first large, take second large => reset first, take third large | take first large | take second large"},
	{"a subject in front that has expired", "take first hour, take second day, clock 3h => take third day, take a day | take second day, take second day => final second day, final third day"},
	{"a table that grows", "fill 5, take a large => take b large | take a large, take a large"},
	{"a table that grows for two", "fill 4, take a large => take b large | take c large | take a large"},
	{"a table that grows beside a ban", "fill 5, take a large => take b large | ban a | take a large"},
	{"the conduct of a limited request that moves", "take front large, take 2 a graceful, take a graceful => reset front | take a graceful, take a graceful"},
	{"the conduct of a ban that moves", "take front large, take a two, ban a => reset front | unban a | take a two"},
	{"slots that get wider for another subject", "take a two, take b two => take a wide | take b two, take b two"},

	// The largest number of subjects.
	{"a new subject at the bound, beside a take of the one it replaces", "max 1, take a large => take b large evicting a | take a large evicting b => peek a large, peek b large"},
	{"a new subject at the bound, beside a take that reaches half of a quota", "max 1, take 4 a large => take b large evicting a | take a large evicting b => peek a large, peek b large"},
	{"a new subject at the bound, beside a ban", "max 2, take a large => take b large evicting a | ban a evicting a b | take a large evicting b => peek a large, peek b large, bans"},
	{"a new subject at the bound, beside a refund of one that is kept", "max 1, take 5 a large => take b large evicting a, take b large evicting a | refund a => take b large evicting a, peek a large, peek b large"},
	{"a new subject at the bound, while a window ends of one that is kept", "max 1, take 5 a large => take b large evicting a, take b large evicting a | clock 2s, take a large evicting b => peek a large, peek b large"},
	{"two new subjects at the bound", "max 2, take 5 a large, take b large => take c large evicting b d | take d large evicting b c | take b large evicting c d => peek a large, peek b large, peek c large, peek d large"},

	// Strikes and bans.
	{"two strikes that start a ban", "take 2 a two => take a two | take a two"},
	{"a strike beside an unban", "take 2 a two, take a two => take a two | unban a"},
	{"a strike beside a refund", "take 2 a two, take a two => take a two | refund a, take a two"},
	{"a strike while a window begins", "take 2 a two, take a two => take a two | take a two | clock 2s"},
	{"a strike beside a reset", "take 2 a two, take a two => take a two | reset a, take a two"},
	{"a ban beside a take", "take a two => ban a | take a two, take a two"},
	{"a ban beside a request that is refused, and one that is not", "take a large => ban a | take 10 a large, take a large"},
	{"a ban of a new subject beside a take", "=> ban a | take a two, take a two"},
	{"a ban beside a plan switch", "take a two => ban a | take a wide | take a two"},
	{"a ban beside a charge and a take", "take a two => ban a | charge 1 a two | take a two"},
	{"a ban beside a save", "take a two, save => ban a | save | take a two"},
	{"an unban beside two takes", "take a two, ban a => unban a | take a two, take a two"},
	{"an unban beside a ban and a take", "take a two, ban a => unban a | ban a | take a two"},
	{"a ban that ends beside takes", "take a large, ban a, clock 1m => take a large | take a large | clock 1s"},
	{"a take of a new subject beside a charge, a ban and a reset", "=> take a two | charge 1 a two, ban a, reset a"},
	{"a ban without an account that ends", "ban a, clock 58s => take a two, take a two | clock 2s"},
	{"a ban beside a reset", "take a two, ban a => reset a | take a two, take a two"},
	{"a banned subject behind two that are reset", "take first large, take second large, take third large, ban third => reset first, reset second | take third large"},
	{"a limited request within the grace, beside a refund", "take 2 a graceful, take a graceful => take a graceful, take a graceful | refund a"},
	{"a limited request within the grace, beside a ban and an unban", "take 2 a graceful, take a graceful => take a graceful, take a graceful | ban a, unban a"},
	{"a limited request within the grace, beside a reset", "take 2 a graceful, take a graceful => take a graceful, take a graceful | reset a"},
	{"a limited request within the grace, while a window begins", "take 2 a graceful, take a graceful => take a graceful | clock 2s | take a graceful"},

	// Charges that are made together.
	{"two groups that share both subjects", "take a two, take b two => all a two + b two | all b two + a two"},
	{"two groups that share a subject with one unit left", "take a large, take b two, take c large => all a large + b two | all c large + b two"},
	{"a group beside takes of both subjects", "take a two, take b two => all a two + b two | take a two | take b two"},
	{"a group beside takes of both subjects by one caller", "take a two, take b two => all a two + b two | take b two, take a two"},
	{"a group beside peeks at both subjects", "take a two, take b two => all a two + b two | peek b two, peek a two | peek a two, peek b two"},
	{"three subjects, the last of which has one unit left", "take a large, take b large, take c two => all a large + b large + c two | take c two, take b large | take a large"},
	{"a group of subjects never seen", "=> all a two + b two | all b two + a two | take b two"},
	{"groups of subjects with locks of their own", "max 16384 => all a two + b two | all b two + a two"},
	{"a group of a subject never seen and one with nothing left", "take 2 b two => all a two + b two | take a two | refund b"},
	{"a group beside a refund", "take a two, take 2 b two => all a two + b two, all a two + b two | refund b"},
	{"a group that is refused within the grace beside takes", "take a graceful, take 2 b graceful, take b graceful => all a graceful + b graceful | take a graceful | refund b, take b graceful"},
	{"a group that is refused within the grace beside takes of both subjects", "take a graceful, take b graceful, take 2 b graceful => all a graceful + 2 b graceful | take a graceful, take b graceful"},
	{"two strikes of a group", "take a two, take 2 b two => all a two + b two | all a two + b two"},
	{"a group beside a ban and an unban", "take a two, take b two => all a two + b two | ban a, unban a"},
	{"a group beside a reset", "take a two, take b two => all a two + b two | reset a | take b two"},
	{"a group beside a plan switch", "take a two, take b two => all a two + b two | take a other | take b two"},
	{"a group beside a save", "take a two, take b two => all a two + b two, take a two | save"},
	{"a group beside a table that grows", "fill 5, take a large => all a large + b large | take a large | take c large"},

	// Smooth quotas: the word of a bucket changes with each charge, without the lock too.
	{"two takes of a smooth quota, one unit left", "take a mixed => take a mixed | take a mixed"},
	{"three takes of a full bucket", "take a smooth, clock 1h => take a smooth | take a smooth | take a smooth"},
	{"two takes of two smooth quotas of a new subject", "=> take a double, take a double | take a double"},
	{"two takes of a smooth quota while a unit comes back", "take 2 a mixed, clock 5s => take a mixed | take a mixed | clock 10s"},
	{"two takes of a smooth quota while the clock steps back", "clock 2m, take a mixed => take a mixed | take a mixed | clock -2m"},
	{"a plan switch from a smooth quota beside takes", "take a mixed => take a two | take a mixed, take a mixed"},
	{"a plan switch to a smooth quota beside a take", "take a two => take a double | take a mixed | take a two"},
	{"takes under a fixed plan beside one of a smooth quota", "take a mixed => take a day, take a day | take a mixed"},
	{"peeks beside a take of smooth quotas", "take a double => peek a double, peek a double | take a double"},
	{"a refund beside takes of a smooth quota", "take 2 a mixed => refund a | take a mixed, take a mixed"},
	{"a charge beside a take of a smooth quota", "take a mixed => charge 1 a mixed | take a mixed"},
	{"a reset beside two takes of a smooth quota", "take a mixed => reset a | take a mixed, take a mixed"},
	{"a save beside two takes of a smooth quota", "take a mixed => save | take a mixed, take a mixed"},

	// Windows of which more is used than 32 bits hold.
	{"two takes that make windows wide", "take 4294967290 a huge => take 5 a huge, take 5 a huge | take 5 a huge"},
	{"two takes of wide windows, one unit left", "take 8589934591 a huge => take a huge | take a huge"},
	{"takes that fill the words of wide windows", "take 4294967296 a huge, take 4294967290 a huge => take 5 a huge | take a huge, take a huge"},
	{"a plan switch beside a take of wide windows", "take 4294967297 a huge => take a two | take a day | take 2 a huge"},
	{"a refund that makes wide windows narrow, beside takes", "take a huge, take 4294967296 a huge => refund a | take a huge, take a huge"},
	{"windows that get wide beside a subject behind", "take first huge, take second large => take 4294967296 first huge | reset second | take second large"},
	{"a reset, a new subject and a save beside takes of wide windows", "take 4294967297 first huge, take second huge => reset first, save | take first huge | take second huge"},
	{"a group of wide windows beside takes by one caller", "take 8589934591 a huge, take b two => all a huge + b two | take b two, take a huge"},

	// Another rate and burst of the same window.
	{"a take of a smooth quota beside one at another rate", "take a faster, take a mixed, clock 10s => take a mixed, take a faster | take a faster"},
	{"a lower burst beside two takes of a smooth quota", "take a faster => take a mixed | take a faster | take a faster"},
	{"a group at another rate beside a refund", "take a mixed, take b mixed => all b mixed + a faster | refund a, take a mixed"},
	{"a group of smooth quotas beside a reset and a charge", "take a mixed, take b mixed => all a mixed + b mixed | reset a, charge 1 b mixed"},

	// Strikes and bans of smooth quotas.
	{"two strikes of a smooth quota", "take 2 a mixed => take a mixed | take a mixed"},
	{"a strike of a smooth quota while a unit comes back", "take 2 a mixed, take a mixed, clock 5s => take a mixed | clock 5s | take a mixed"},
	{"a strike of a smooth quota beside a refund", "take 2 a mixed => take a mixed, refund a | take a mixed => peek a mixed"},
	{"a ban beside takes of a smooth quota", "take a mixed => ban a, peek a mixed | take a mixed, take a mixed"},
	{"an unban beside two takes of a smooth quota", "take a mixed, ban a => unban a | take a mixed, take a mixed"},
	{"a request within the grace of a smooth quota, beside a refund", "take 2 a lenient, take a lenient => take a lenient, take a lenient | refund a"},
	{"a larger request within the grace of a smooth quota, beside a take", "take a lenient, take 2 a lenient => take 2 a lenient | take a lenient"},
	{"a request within the grace of a smooth quota, while a unit comes back", "take 2 a lenient, clock 9s, take a lenient => take a lenient | clock 1s | take a lenient"},
	{"a request that is refused for a moment, beside a refund and a later clock", "take 2 a lenient, clock 9500ms, take a lenient => take a lenient | refund a, clock 100ms"},

	// Slots with smooth quotas that move or end.
	{"a table that grows beside a take of a smooth quota", "fill 5, take a mixed => take b large | take a mixed, take a mixed"},
	{"a reset of the subject in front of two with smooth quotas", "take first large, take second mixed, take third mixed => reset first | take second mixed | take third mixed"},
	{"a subject with a full bucket, which new ones sweep away beside a take", "take a smooth, clock 1h => take b large, take c large | take a smooth"},
	{"a new subject at the bound, beside a take of one with a full bucket", "max 1, take a deep, clock 20s => take b large evicting a | take a deep evicting b => peek a deep, peek b large"},

	// Groups with smooth quotas.
	{"two groups that share smooth quotas of both subjects", "take a mixed, take b mixed => all a mixed + b mixed | all b mixed + a mixed"},
	{"a group beside takes of smooth quotas by one caller", "take a mixed, take b mixed => all a mixed + b mixed | take b mixed, take a mixed"},
	{"a group of a smooth quota and fixed windows beside takes", "take a smooth, take b two => all a smooth + b two | take a smooth | take b two"},
	{"a group of which the smooth quota of the second refuses, beside takes", "take a lenient, take b lenient, take 2 b lenient => all a lenient + 2 b lenient | take a lenient, take b lenient"},
	{"a group of smooth quotas beside peeks", "take a mixed, take b mixed => all a mixed + b mixed | peek b mixed, peek a mixed | peek a mixed, peek b mixed"},
	{"a group of smooth quotas beside a ban and an unban", "take a mixed, take b mixed => all a mixed + b mixed | ban a, unban a"},
	{"a group of smooth quotas beside a save", "take a mixed, take b mixed => all a mixed + b mixed, take a mixed | save"},
}

// largeCases have so many schedules that the test leaves them out unless asked.
var largeCases = []row{
	{"two plan switches", "take a two => take a other | take a wide | take a two"},
	{"takes beside a reset and a plan switch while a window begins", "take a two => take a two, take a two | reset a, take a other | clock 2s"},
	{"three strikes, one too many", "take 2 a two => take a two | take a two | take a two"},
	{"strikes beside a refund, a ban and an unban", "take 2 a two, take a two => take a two, take a two | refund a, take a two | ban a, unban a"},
	{"three groups in a ring", "take a two, take b two, take c two => all a two + b two | all b two + c two | all c two + a two"},
}
