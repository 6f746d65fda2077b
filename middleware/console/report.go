package console

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const (
	mostSubjects = 20  // users, and networks
	mostBans     = 200 // more would make the page slow
	rateSeconds  = 5   // whole seconds that a rate is the average of
	patience     = time.Second
)

// A report is what the console answers as JSON, and what the page shows.
type report struct {
	Title        string             `json:"title"`
	At           time.Time          `json:"at"`        // by the clock of the engine
	Since        time.Time          `json:"since"`     // when the console began to count
	Decisions    map[string]int64   `json:"decisions"` // by outcome
	PerSecond    float64            `json:"perSecond"`
	Seconds      []int64            `json:"seconds"` // decisions in each second, the oldest first; the last one is not over
	Last         string             `json:"last"`    // what Subjects and Networks are about: minute, day
	Subjects     []subject          `json:"subjects"`
	Networks     []subject          `json:"networks"`
	Bans         *list[ban]         `json:"bans,omitempty"` // nil: the engine has none
	Engines      []engineFacts      `json:"engines"`
	Facts        map[string]any     `json:"facts"`
	Deprecations *list[Deprecation] `json:"deprecations,omitempty"`
}

// A list is a part of a report that can fail.
type list[T any] struct {
	Error string `json:"error,omitempty"`
	Total int    `json:"total"`
	List  []T    `json:"list"`
}

// A subject is one of the busiest.
type subject struct {
	Subject string  `json:"subject"`
	Plan    string  `json:"plan"`
	Allowed int64   `json:"allowed"`
	Denied  int64   `json:"denied"`            // limited, banned or suspended
	Outcome string  `json:"outcome,omitempty"` // of a request now; "" if that is not known
	Quotas  []quota `json:"quotas,omitempty"`
	plan    *ratelimit.Plan
}

type quota struct {
	Quota string    `json:"quota"` // "60/minute"
	Used  int64     `json:"used"`
	Most  int64     `json:"most"` // at once
	Reset time.Time `json:"reset"`
}

type ban struct {
	Subject string    `json:"subject"`
	Ends    time.Time `json:"ends"`
	Level   int       `json:"level"`
	Reason  string    `json:"reason"`
	Unban   string    `json:"unban"` // the form value that ends it, which has any bytes of the subject
}

// report asks the service, and the engine, which has a second to answer.
func (c *Console) report(ctx context.Context, last string) *report {
	now := c.counts.now()
	byOutcome, inSeconds := c.counts.decisions(now.Unix())
	r := &report{
		Title: c.options.Title, At: now.UTC(), Since: c.since.UTC(), Last: last, Seconds: inSeconds,
		Decisions: map[string]int64{}, Engines: []engineFacts{}, Facts: map[string]any{},
	}
	for o, n := range byOutcome {
		r.Decisions[ratelimit.Outcome(o).String()] = n
	}
	for _, n := range inSeconds[shownSeconds-1-rateSeconds : shownSeconds-1] {
		r.PerSecond += float64(n) / rateSeconds
	}
	r.Subjects, r.Networks = c.counts.busiest(now.Unix(), last == "day", mostSubjects)

	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if banner, ok := c.limiter.(engine.Banner); ok {
		r.Bans = listBans(asking, banner)
	}
	if peeker, ok := c.limiter.(engine.Peeker); ok {
		_ = addUsage(asking, peeker, r.Subjects) && addUsage(asking, peeker, r.Networks)
	}
	for _, e := range c.options.Engines {
		if known, ok := factsOf(e); ok {
			r.Engines = append(r.Engines, known)
		}
	}
	if c.options.Facts != nil {
		maps.Copy(r.Facts, c.options.Facts(ctx))
	}
	if c.options.Deprecations != nil {
		r.Deprecations = c.deprecations(ctx)
	}
	return r
}

// addUsage adds what each subject has used of its plan. After an error, the engine is not asked
// again.
func addUsage(ctx context.Context, peeker engine.Peeker, subjects []subject) bool {
	for i := range subjects {
		s := &subjects[i]
		d, err := peeker.Peek(ctx, s.Subject, s.plan)
		if err != nil {
			return false
		}
		s.Outcome = d.Outcome.String()
		for j, q := range s.plan.Quotas() {
			s.Quotas = append(s.Quotas, quota{q.String(), d.Used(j), cmp.Or(q.Burst(), q.Limit), time.Unix(d.States[j].Reset, 0).UTC()})
		}
	}
	return true
}

// listBans lists the bans in force, those that end last first.
func listBans(ctx context.Context, banner engine.Banner) *list[ban] {
	bans, err := banner.Bans(ctx)
	if err != nil {
		return &list[ban]{Error: "The bans cannot be listed: " + err.Error(), List: []ban{}}
	}
	slices.SortFunc(bans, func(x, y engine.Ban) int {
		return cmp.Or(y.Ends.Compare(x.Ends), cmp.Compare(x.Subject, y.Subject))
	})
	l := &list[ban]{Total: len(bans), List: make([]ban, min(len(bans), mostBans))}
	for i, b := range bans[:len(l.List)] {
		l.List[i] = ban{b.Subject, b.Ends.UTC(), b.Level, b.Reason, url.PathEscape(b.Subject)}
	}
	return l
}

func (c *Console) deprecations(ctx context.Context) *list[Deprecation] {
	operations, err := c.options.Deprecations(ctx)
	if err != nil {
		return &list[Deprecation]{Error: "The deprecated operations cannot be listed: " + err.Error(), List: []Deprecation{}}
	}
	l := &list[Deprecation]{Total: len(operations), List: append([]Deprecation{}, operations...)}
	for i, d := range l.List {
		if d.Users == nil {
			l.List[i].Users = c.usersOf(d.Operation)
		}
	}
	return l
}

// An engineFacts has the numbers of one engine.
type engineFacts struct {
	Engine string         `json:"engine"` // the name of its package
	Away   bool           `json:"away"`   // the circuit is open: the shared engine does not decide
	Facts  map[string]any `json:"facts"`
}

// factsOf returns the numbers that the method Stats of an engine returns in a struct, as those of
// packages memory, lease and failover do, and whether the engine has the method.
func factsOf(engine any) (e engineFacts, ok bool) {
	method := reflect.ValueOf(engine).MethodByName("Stats")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 || method.Type().Out(0).Kind() != reflect.Struct {
		return e, false
	}
	stats := method.Call(nil)[0]
	e.Engine, e.Facts = path.Base(stats.Type().PkgPath()), map[string]any{}
	for field, value := range stats.Fields() {
		if field.IsExported() {
			e.Facts[strings.ToLower(field.Name)] = value.Interface()
		}
	}
	if circuit, ok := engine.(interface{ Open() bool }); ok {
		e.Away = circuit.Open()
	}
	return e, true
}
