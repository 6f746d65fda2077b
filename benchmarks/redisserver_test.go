package benchmarks

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// startRedis starts a redis-server on a free port of the loopback interface,
// which keeps nothing and is killed in the end, and returns a client of it.
// Without the program the benchmark is skipped.
func startRedis(b *testing.B) *redis.Client {
	b.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if testenv.Required() {
			b.Fatal("redis-server is not on this machine, and GATEHOUSE_REQUIRE_SERVERS=1")
		}
		skip(b, "redis-server is not on this machine")
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	server := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--dir", b.TempDir(), "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	b.Cleanup(func() { client.Close() })
	deadline := time.Now().Add(30 * time.Second)
	for {
		info, err := client.InfoMap(context.Background(), "server").Result()
		if err == nil && info["Server"]["process_id"] == strconv.Itoa(server.Process.Pid) {
			return client
		}
		if time.Now().After(deadline) {
			b.Fatalf("redis-server does not answer on port %s: %v", port, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// serverWork returns the processor time that the server's main thread has spent,
// and how often it has read from a connection, which is once a round trip.
func serverWork(b *testing.B, client *redis.Client) (spent time.Duration, reads int) {
	info := must(client.InfoMap(context.Background(), "cpu", "stats").Result())
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			b.Fatalf("redis-server says %q for %s", info["CPU"][field], field)
		}
		spent += time.Duration(seconds * float64(time.Second))
	}
	reads = must(strconv.Atoi(info["Stats"]["total_reads_processed"]))
	return spent, reads
}
