package dashboard

const storeTime = "petstore_store_duration_seconds"

func serverRows() []row {
	return []row{
		{"Limiter", []panel{
			{
				title: "Time of a decision", unit: "s", width: 8,
				description: "How long a request waits for the decision of the limiter. With Redis it is at least one round trip.",
				queries: []query{
					{quantile("0.5", "", "gatehouse_engine_duration_seconds"), "median"},
					{quantile("0.99", "", "gatehouse_engine_duration_seconds"), "99th percentile"},
				},
			},
			{
				title: "Places in use", unit: "percentunit", width: 8, most: 1, critical: 0.9,
				description: "Share of the places of the embedded limiter that hold a subject. When it is full, subjects that used least are forgotten first. Above the dashed line PetstoreLimiterNearlyFull fires.",
				queries:     []query{{of("gatehouse_engine_subjects") + " / " + of("gatehouse_engine_capacity"), "{{instance}}"}},
			},
			{
				title: "Without a place", unit: count, width: 8,
				description: "Subjects in the last 5 minutes that were forgotten too early (evicted), or found no place (refused). Both should be 0.",
				queries: []query{
					{sum("instance", "increase("+of("gatehouse_engine_evictions_total")+"[5m])"), "evicted, {{instance}}"},
					{sum("instance", "increase("+of("gatehouse_engine_refusals_total")+"[5m])"), "refused, {{instance}}"},
				},
			},
		}},
		{"Redis (empty if the setting redis is empty)", []panel{
			{
				title: "Circuit", unit: count, width: 8, most: 1,
				description: "1: the server uses Redis. 0: it decides without Redis, as on_redis_failure says, and PetstoreRedisUnavailable fires after a minute.",
				queries:     []query{{of("gatehouse_failover_circuit", `gatehouse_state="closed"`), "{{instance}}"}},
			},
			{
				title: "Time of a call", unit: "s", width: 8,
				description: "How long one call of the script takes. A call decides a batch of requests.",
				queries: []query{
					{quantile("0.5", "", "gatehouse_redis_duration_seconds"), "median"},
					{quantile("0.99", "", "gatehouse_redis_duration_seconds"), "99th percentile"},
				},
			},
			{
				title: "Requests per call", unit: "short", width: 8,
				description: "How many requests one call decides on average. Larger batches under load save round trips.",
				queries:     []query{{sum("instance", rate("gatehouse_redis_batch_size_sum")) + " / " + sum("instance", rate("gatehouse_redis_batch_size_count")), "{{instance}}"}},
			},
			{
				title: "Failed calls", unit: "ops", width: 12,
				description: "Per second: calls of Redis that failed, those of them that had no answer in time, and requests that were decided without Redis.",
				queries: []query{
					{sum("", rate("gatehouse_failover_failures_total")), "failed"},
					{sum("", rate("gatehouse_failover_timeouts_total")), "of them, no answer in time"},
					{sum("", rate("gatehouse_failover_fallbacks_total")), "requests decided without Redis"},
				},
			},
			{
				title: "Usage not in Redis", unit: count, width: 12,
				description: "Subjects whose usage is not added to Redis yet (pending), and requests whose usage was lost because there was no room for it, in the last hour.",
				queries: []query{
					{of("gatehouse_failover_pending"), "pending, {{instance}}"},
					{"increase(" + of("gatehouse_failover_lost_total") + "[1h])", "lost, {{instance}}"},
				},
			},
		}},
		{"Database", []panel{
			{
				title: "99th percentile by operation", unit: "s", width: 8, critical: 0.25,
				description: "99 in 100 operations took at most this long. Writes wait for the disk. Above the dashed line for all operations together, PetstoreStoreSlow fires.",
				queries:     []query{{quantile("0.99", "petstore_operation", storeTime), "{{petstore_operation}}"}},
			},
			{
				title: "Operations", unit: "ops", width: 8,
				description: "Operations per second. Keys are cached, so that they are read much less often than there are requests.",
				queries:     []query{{sum("petstore_operation", rate(storeTime+"_count")), "{{petstore_operation}}"}},
			},
			{
				title: "Failed operations", unit: "ops", width: 8,
				description: "Operations per second that failed, by kind of error.",
				queries:     []query{{sum("petstore_operation, error_type", rate(storeTime+"_count", `error_type!=""`)), "{{petstore_operation}}: {{error_type}}"}},
			},
		}},
		{"PostgreSQL (empty if the database is a SQLite file)", []panel{
			{
				title: "Database connections", unit: count, width: 12,
				description: "Connections of each server to PostgreSQL: with a running call, without one, and the maximum (pool_max_conns in the URL). PetstoreDatabaseConnectionsBusy fires if more than 90 % are in use for 5 minutes.",
				queries: []query{
					{of("petstore_database_connections_used"), "used, {{instance}}"},
					{of("petstore_database_connections_idle"), "idle, {{instance}}"},
					{of("petstore_database_connections_max"), "maximum, {{instance}}"},
				},
			},
			{
				title: "Waits for a database connection", unit: "ops", width: 6,
				description: "Calls of the database per second that waited for a connection, and those that got none in time. The latter are answered with 503.",
				queries: []query{
					{sum("instance", rate("petstore_database_waits_total")), "waited, {{instance}}"},
					{sum("instance", rate("petstore_database_wait_timeouts_total")), "got none, {{instance}}"},
				},
			},
			{
				title: "Time of a wait", unit: "s", width: 6,
				description: "How long the calls that waited for a connection waited on average.",
				queries:     []query{{sum("instance", rate("petstore_database_wait_time_seconds_total")) + " / " + sum("instance", rate("petstore_database_waits_total")), "{{instance}}"}},
			},
		}},
		{"Server", []panel{
			{
				title: "Connections", unit: count, width: 8,
				description: "Open connections, and those of them without a running request.",
				queries: []query{
					{sum("petstore_listener", of("petstore_connections_open")), "open, {{petstore_listener}}"},
					{sum("petstore_listener", of("petstore_connections_idle")), "idle, {{petstore_listener}}"},
				},
			},
			{
				title: "Connections over a limit", unit: "cps", width: 8,
				description: "Per second: new connections that were refused (max_connections_per_network), idle connections that were closed for new ones, and new connections that had to wait (max_connections).",
				queries: []query{
					{sum("petstore_listener", rate("petstore_connections_refused_total")), "refused, {{petstore_listener}}"},
					{sum("petstore_listener", rate("petstore_connections_evicted_total")), "closed for others, {{petstore_listener}}"},
					{sum("petstore_listener", rate("petstore_connections_waited_total")), "had to wait, {{petstore_listener}}"},
				},
			},
			{
				title: "Panics and dropped log lines", unit: count, width: 8,
				description: "In the last 5 minutes. A panic is a defect: the log has its stack. Lines are dropped if the log cannot be written fast enough.",
				queries: []query{
					{sum("instance", "increase("+of("gatehouse_panics_total")+"[5m])"), "panics, {{instance}}"},
					{sum("instance", "increase("+of("petstore_log_dropped_lines_total")+"[5m])"), "dropped lines, {{instance}}"},
				},
			},
			{
				title: "Usage", unit: count, stat: true, width: 6, critical: 1, none: "?",
				description: "Whether usage, bans and counts of use can be saved.",
				texts:       map[string]string{"0": "saved", "1": "cannot be saved"},
				queries:     []query{{"max(" + of("petstore_saves_failing") + ")", "saves"}},
			},
			{
				title: "Settings", unit: count, stat: true, width: 6, critical: 0, warning: 1, low: true, none: "?",
				description: "Whether the last reload succeeded on all servers.",
				texts:       map[string]string{"0": "changed settings refused", "1": "in force"},
				queries:     []query{{"min(" + of("petstore_config_last_reload_success") + ")", "settings"}},
			},
			{
				title: "Reloads today", unit: count, stat: true, width: 6, none: "0",
				description: "Reloads in the last 24 hours, by what became of them.",
				queries:     []query{{sum(result, "increase("+of("petstore_config_reloads_total")+"[1d])"), "{{gatehouse_result}}"}},
			},
			{
				title: "Until the certificate expires", unit: "s", stat: true, width: 6, warning: 14 * 24 * 3600, critical: 3 * 24 * 3600, low: true, none: "no TLS",
				description: "How long the certificate that expires first is valid. PetstoreCertificateExpiring fires at 14 days.",
				queries:     []query{{"min(" + of("petstore_certificate_expiry_timestamp_seconds") + ") - time()", "valid"}},
			},
		}},
		{"Process", []panel{
			{
				title: "Processors", unit: "short", width: 8,
				description: "How many processors the process keeps busy.",
				queries:     []query{{rate("process_cpu_seconds_total"), "{{instance}}"}},
			},
			{
				title: "Memory", unit: "bytes", width: 8,
				description: "Memory of the process (resident), and the part of it that Go's heap uses.",
				queries: []query{
					{of("process_resident_memory_bytes"), "process, {{instance}}"},
					{of("go_memstats_heap_inuse_bytes"), "heap, {{instance}}"},
				},
			},
			{
				title: "Goroutines", unit: count, width: 8,
				description: "A number that grows without more traffic points to a leak.",
				queries:     []query{{of("go_goroutines"), "{{instance}}"}},
			},
			{
				title: "Longest pause of the garbage collector", unit: "s", width: 8,
				description: "The longest pause of the most recent collections.",
				queries:     []query{{of("go_gc_duration_seconds", `quantile=~"1|1.0"`), "{{instance}}"}},
			},
			{
				title: "Open files", unit: "percentunit", width: 8, most: 1, critical: 0.9,
				description: "Share of the files that the process may open. The server lowers max_connections at its start if the share would exceed 1.",
				queries:     []query{{of("process_open_fds") + " / " + of("process_max_fds"), "{{instance}}"}},
			},
			{
				title: "Age of the process", unit: "s", width: 8,
				description: "Time since the start. The blue lines in all panels mark starts.",
				queries:     []query{{"time() - " + of("process_start_time_seconds"), "{{instance}}"}},
			},
		}},
	}
}
