//go:build unix

package redislimit_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// exactServer names the server in the environment of the processes that the test
// starts from its own binary.
const exactServer = "REDISLIMIT_TEST_SERVER"

var exactLimits = []int64{1, 2, 7, 60, 333, 1000, 5000}

const exactCallers, exactRequests = 16, 10_000 / 3

// Three processes send ten thousand requests to one Redis. Over all of them
// exactly the limit is admitted: in a window that does not end, and in each of the
// seconds that the requests fall into.
func TestThreeProcesses(t *testing.T) {
	if addr := os.Getenv(exactServer); addr != "" {
		exactProcess(t, addr)
		return
	}
	s := redistest.Start(t)
	outputs := make([][]byte, 3)
	var wg sync.WaitGroup
	for i := range outputs {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestThreeProcesses$", "-test.count=1")
			cmd.Env = append(os.Environ(), exactServer+"="+s.Addr)
			var err error
			if outputs[i], err = cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, outputs[i])
			}
		})
	}
	wg.Wait()
	admitted, asked := map[string]int64{}, map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(bytes.Join(outputs, nil))); lines.Scan(); {
		var window string
		var a, n int64
		if strings.HasPrefix(lines.Text(), "window ") {
			if _, err := fmt.Sscanf(lines.Text(), "window %s %d %d", &window, &a, &n); err != nil {
				t.Fatal(err)
			}
			admitted[window] += a
			asked[window] += n
		}
	}
	if len(admitted) < 2*len(exactLimits) {
		t.Fatalf("%d windows were told of, want at least %d", len(admitted), 2*len(exactLimits))
	}
	for window := range asked {
		text, _, _ := strings.Cut(window, "/")
		limit, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if want := min(limit, asked[window]); admitted[window] != want {
			t.Errorf("%s: %d of %d requests were admitted, want %d", window, admitted[window], asked[window], want)
		}
	}
}

// exactProcess is one of the three. For each window it writes how many requests it
// had admitted, and how many it made.
func exactProcess(t *testing.T, addr string) {
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute})
	defer c.Close()
	l, err := redislimit.New(c, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range exactLimits {
		for _, quota := range []ratelimit.Quota{{Limit: limit, Window: fixedwindow.MaxLength}, ratelimit.PerSecond(limit)} {
			plan := ratelimit.MustPlan("", ratelimit.Penalty{}, quota)
			var mu sync.Mutex
			admitted, asked := map[string]int{}, map[string]int{}
			var wg sync.WaitGroup
			for range exactCallers {
				wg.Go(func() {
					for range exactRequests / exactCallers {
						d, err := l.Take(ctx, quota.String(), plan, 1)
						if err != nil {
							t.Error(err)
							return
						}
						window := fmt.Sprintf("%v-until-%d", quota, d.States[0].Reset)
						mu.Lock()
						asked[window]++
						if d.Allowed() {
							admitted[window]++
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			for window, n := range asked {
				fmt.Println("window", window, admitted[window], n)
			}
		}
	}
}
