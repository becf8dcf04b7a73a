//go:build peers

package peers_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

var (
	rounds = flag.Int("rounds", 7, "interleaved rounds; 1 is a check that everything runs")
	length = flag.Duration("length", 3*time.Second, "of each load")
)

// load is one row of the table: what is sent, through which route, and how many requests were answered in time.
type load struct {
	name  string
	route string
	run   func(t *testing.T, address string) (answered int)
	nginx bool // nginx can do this: it speaks HTTP/2 to no endpoint but those of gRPC
}

// loads are those of the table, without the latency.
func loads() []load {
	return []load{
		{"HTTP/1.1, 32 connections", "h1", wrk(32, "/"), true},
		{"HTTP/1.1, 256 connections", "h1", wrk(256, "/"), true},
		{"h2c, 8 × 10 streams", "h2", h2load(8, 10, "/"), false},
		{"h2c, 32 × 1", "h2", h2load(32, 1, "/"), false},
		{"grpc-go unary, 8 × 10", "grpc", unary(8, 10), true},
		{"grpc-go unary, 32 × 1", "grpc", unary(32, 1), true},
		{"grpc-go unary, 64 × 4", "grpc", unary(64, 4), true},
		{"TCP, 32 connections", "tcp", wrk(32, "/"), true},
		{"HTTP/1.1, 1 MiB bodies, 8 connections", "h1", wrk(8, "/large"), true},
		{"h2c, 1 MiB bodies, 8 × 1", "h2", h2load(8, 1, "/large"), false},
	}
}

// output runs a program and finds a number in what it prints.
func output(t *testing.T, pattern, command string, args ...string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
	found := regexp.MustCompile(pattern).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%s %q: %v\n%s", command, args, err, out)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil || n == 0 {
		t.Fatalf("%s %q: %v\n%s", command, args, err, out)
	}
	if errors := regexp.MustCompile(`(?m)^ *(Non-2xx.*|Socket errors.*|.* [1-9][0-9]* (?:failed|errored).*)$`).Find(out); errors != nil {
		t.Errorf("%s %q: %s", command, args, errors)
	}
	return n
}

// wrk loads with HTTP/1.1. It counts whole seconds.
func wrk(connections int, path string) func(*testing.T, string) int {
	return func(t *testing.T, address string) int {
		t.Helper()
		return output(t, `(\d+) requests in`, "wrk", "-t2", fmt.Sprint("-c", connections), fmt.Sprintf("-d%.0fs", max(1, length.Seconds())), "http://"+address+path)
	}
}

func h2load(connections, streams int, path string) func(*testing.T, string) int {
	return func(t *testing.T, address string) int {
		t.Helper()
		return output(t, `(\d+) succeeded`, "h2load", "-t1", fmt.Sprint("-c", connections), fmt.Sprint("-m", streams), "-w20", "-W24",
			fmt.Sprintf("-D%.0f", max(1, length.Seconds())), "http://"+address+path)
	}
}

// unary calls over that many connections, with that many calls at a time on each.
func unary(connections, calls int) func(*testing.T, string) int {
	return func(t *testing.T, address string) int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), *length)
		defer cancel()
		var answered atomic.Int64
		var running sync.WaitGroup
		for range connections {
			conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			client := healthv1.NewHealthClient(conn)
			for range calls {
				running.Go(func() {
					for ctx.Err() == nil {
						if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}); err == nil {
							answered.Add(1)
						} else if ctx.Err() == nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		running.Wait()
		return int(answered.Load())
	}
}

// tick is the unit of /proc/PID/stat's processor times, which is the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// processorTime is what a process and its children have used.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name of the program, in brackets, may have spaces; utime and stime are the 12th and 13th field after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		sum += processorTime(t, n)
	}
	return sum
}

// startNginx starts nginx as a proxy.
func startNginx(t *testing.T, ip string, routes []route) *proxy {
	t.Helper()
	p := newProxy(t, "nginx", ip, routes)
	var servers, streams strings.Builder
	for _, r := range routes {
		switch listen := p.address[r.name]; {
		case r.tcp:
			fmt.Fprintf(&streams, "  server { listen %s; proxy_pass %s; }\n", listen, r.endpoint)
		case r.grpc:
			fmt.Fprintf(&servers, "  upstream %[1]s { server %[2]s; keepalive 300; keepalive_requests 1000000; }\n"+
				"  server { listen %[3]s http2; http2_max_requests 1000000; keepalive_requests 1000000;\n"+
				"    location / { grpc_pass grpc://%[1]s; grpc_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }\n", r.name, r.endpoint, listen)
		case r.h2: // nginx speaks HTTP/2 to no such endpoint; the port only has to exist
			fmt.Fprintf(&servers, "  server { listen %s; return 501; }\n", listen)
		default:
			fmt.Fprintf(&servers, "  upstream %[1]s { server %[2]s; keepalive 300; keepalive_requests 1000000; }\n"+
				"  server { listen %[3]s; keepalive_requests 1000000; location / { proxy_pass http://%[1]s; proxy_http_version 1.1;\n"+
				"    proxy_set_header Connection \"\"; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }\n",
				r.name, r.endpoint, listen)
		}
	}
	p.nginx(t, servers.String(), streams.String())
	return p
}

// startSite starts nginx as the endpoint of all proxies, over HTTP/1.1 and HTTP/2.
func startSite(t *testing.T, ip string) *proxy {
	t.Helper()
	p := newProxy(t, "endpoint", ip, []route{{name: "h1"}, {name: "h2"}})
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "large"), make([]byte, 1<<20), 0o644); err != nil { //nolint:gosec // workers of nginx read it.
		t.Fatal(err)
	}
	var servers strings.Builder
	for name, options := range map[string]string{"h1": "", "h2": " http2"} {
		fmt.Fprintf(&servers, "  server { listen %s%s; keepalive_requests 100000000; root %s;\n    location = / { return 200 \"hello from the endpoint\\n\"; } }\n",
			p.address[name], options, folder)
	}
	p.nginx(t, servers.String(), "")
	return p
}

// nginx runs nginx with two workers, without logs of requests.
func (p *proxy) nginx(t *testing.T, servers, streams string) {
	t.Helper()
	head := "daemon off;\nworker_processes 2;\nuser root;\nerror_log stderr warn;\n"
	if streams != "" {
		head += "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n"
		streams = "stream {\n" + streams + "}\n"
	}
	folder := t.TempDir()
	text := fmt.Sprintf("%spid %s/pid;\nevents { worker_connections 4000; }\n%shttp {\n  access_log off; sendfile on; tcp_nopush on; open_file_cache max=10;\n%s}\n",
		head, folder, streams, servers)
	p.launch(t, "nginx", "-p", folder, "-c", p.write(t, "nginx.conf", text))
}

// startCalls serves gRPC's health checks in this process, as the endpoint of all proxies.
func startCalls(t *testing.T, ip string) string {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// series are the figures of a row, by the proxy's name, one for each round.
type series map[string][]float64

// against are the ratios of a proxy's figures to another's, round by round.
func (s series) against(name, base string) (ratios []float64) {
	for i, f := range s[name] {
		if s[base][i] > 0 { // shorter than a tick: a round that is too short to say anything
			ratios = append(ratios, f/s[base][i])
		}
	}
	slices.Sort(ratios)
	return ratios
}

// cell prints the median and the range.
func cell(sorted []float64) string {
	switch n := len(sorted); n {
	case 0:
		return "–"
	case 1:
		return fmt.Sprintf("%.2f", sorted[0])
	default:
		return fmt.Sprintf("%.2f (%.2f–%.2f)", sorted[n/2], sorted[0], sorted[n-1])
	}
}

// TestPeersCost prints what a request costs weir, Envoy and nginx, as ratios to HAProxy in the same round.
func TestPeersCost(t *testing.T) {
	site, calls := startSite(t, "127.78.9.1"), startCalls(t, "127.78.9.1")
	routes := []route{
		{name: "h1", endpoint: site.address["h1"]},
		{name: "h2", endpoint: site.address["h2"], h2: true},
		{name: "grpc", endpoint: calls, grpc: true},
		{name: "tcp", endpoint: site.address["h1"], tcp: true},
	}
	var proxies []*proxy
	for i, start := range []starter{startHAProxy, startWeir, startEnvoy, startNginx} {
		proxies = append(proxies, start(t, fmt.Sprintf("127.78.9.%d", 2+i), routes))
	}
	figures, all := map[string]series{}, loads()
	delays := series{}
	for round := range *rounds {
		lowest := 0 // the lowest rate of the first load
		for i, l := range all {
			if figures[l.name] == nil {
				figures[l.name] = series{}
			}
			for turn := range proxies {
				p := proxies[(turn+round+i)%len(proxies)]
				if p.name == "nginx" && !l.nginx {
					continue
				}
				before := processorTime(t, p.pid)
				answered := l.run(t, p.address[l.route])
				used := processorTime(t, p.pid) - before
				figures[l.name][p.name] = append(figures[l.name][p.name], used.Seconds()*1e6/float64(answered))
				if i == 0 && (lowest == 0 || answered < lowest) {
					lowest = answered
				}
				t.Logf("round %d, %s, %s: %d requests, %v", round+1, l.name, p.name, answered, used)
			}
		}
		rate := float64(lowest) / max(1, length.Seconds()) / 2
		direct := late(t, site.address["h1"], rate)
		for turn := range proxies {
			p := proxies[(turn+round)%len(proxies)]
			delays[p.name] = append(delays[p.name], max(1, late(t, p.address["h1"], rate)-direct))
		}
	}
	printTable(t, figures, delays)
}

// late is the 99th percentile of the latency in µs at a rate of requests a second, over 32 connections.
func late(t *testing.T, address string, rate float64) float64 {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	seconds := max(1, length.Seconds())
	output(t, `(\d+) succeeded`, "h2load", "--h1", "-t1", "-c32", fmt.Sprintf("--rps=%.1f", max(1, rate/32)), fmt.Sprintf("-D%.0f", seconds),
		"--log-file="+log, "http://"+address+"/")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var delays []float64
	for line := range strings.Lines(string(text)) {
		if columns := strings.Fields(line); len(columns) == 3 {
			n, err := strconv.ParseFloat(columns[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			delays = append(delays, n)
		}
	}
	slices.Sort(delays)
	if len(delays) == 0 {
		t.Fatalf("no latency in %q", text)
	}
	return delays[len(delays)*99/100]
}

func printTable(t *testing.T, figures map[string]series, delays series) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\nProcessor time of the proxy per request: ratios to HAProxy in the same round, median of %d rounds and range.\n\n", *rounds)
	b.WriteString("| load | HAProxy, µs | weir / HAProxy | Envoy / HAProxy | nginx / HAProxy | weir / Envoy |\n|---|---|---|---|---|---|\n")
	write := func(name string, s series) {
		base := slices.Sorted(slices.Values(s["HAProxy"]))
		fmt.Fprintf(&b, "| %s | %s |", name, cell(base))
		for _, other := range []string{"weir", "Envoy", "nginx"} {
			fmt.Fprintf(&b, " %s |", cell(s.against(other, "HAProxy")))
		}
		fmt.Fprintf(&b, " %s |\n", cell(s.against("weir", "Envoy")))
	}
	for _, l := range loads() {
		write(l.name, figures[l.name])
	}
	write("latency p99 at half of the lowest peak rate, added to direct", delays)
	fmt.Println(b.String())
}
