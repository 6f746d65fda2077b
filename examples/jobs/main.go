// Jobs sends messages through a mail service that allows three a second. Its workers wait
// for their turn, and a caller without time to wait learns so at once.
//
//	go run ./examples/jobs
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// mail is what the mail service allows all processes of its customer together.
var mail = ratelimit.MustPlan("mail", ratelimit.Penalty{}, ratelimit.PerSecond(3))

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	engine, err := memory.New(memory.Options{}) // redislimit.New shares the limit with other processes
	if err != nil {
		return err
	}
	waiter := ratelimit.NewWaiter(engine)
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // windows begin with a second
	begin := time.Now().Truncate(time.Second)
	second := func() int { return int(time.Since(begin) / time.Second) }

	// A job: two workers, of which each waits before it sends. Only one of them asks the
	// engine, once in a second.
	lines := make(chan string)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for range 4 {
				if _, err := waiter.Wait(context.Background(), "mail", mail, 1); err != nil {
					lines <- err.Error()
					return
				}
				lines <- fmt.Sprintf("second %d: sent a newsletter", second())
			}
		})
	}
	go func() { workers.Wait(); close(lines) }()
	for line := range lines {
		fmt.Fprintln(out, line)
	}

	// A request: its client waits for a tenth of a second at most.
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		d, err := waiter.Wait(ctx, "mail", mail, 1)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Fprintf(out, "second %d: refused at once, retry after %v\n", second(), d.RetryAfter.Round(time.Second))
			return nil
		case err != nil:
			return err
		}
		fmt.Fprintf(out, "second %d: sent a receipt\n", second())
	}
}
