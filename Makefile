# Verbs: build test lint fuzz bench golden generate e2e, and install, deploy-check, check-metrics, kube, scale, mutations, smuggling, peers. Tools are
# pinned in tools.mod (helm in tools-helm.mod and controller-gen in tools-crd.mod, because their needs would change those of the others) and built by the go
# command; the programs that tests run (curl, wrk, chromium, nft, ip) and promtool come from the system's packages. STATIC is how weir,
# the tools and the control plane are built, and what vet is told, so that all share what is compiled.
GO       ?= go
STATIC   := env CGO_ENABLED=0 GOFLAGS=-trimpath
TOOL     := $(STATIC) $(GO) tool -modfile=tools.mod
HELM     := $(STATIC) $(GO) tool -modfile=tools-helm.mod helm
CRDGEN   := $(STATIC) $(GO) tool -modfile=tools-crd.mod controller-gen
FUZZTIME ?= 20000x
BENCH    ?= .
COUNT    ?= 1
ROUNDS   ?= 7
E2EFLAGS ?=
PKG      ?= ./...
PROOF    ?= steady,skew,spike,brownout,half-failing,gray,zone-loss,speeds
LIVE     := /(internal/(agent|demo|l7)|test/(e2e|peers)|cmd/weir)$$
SINGLE   := /(internal/(core/(balance|hash|health|overflow|plan|policy|reason|route|topology)|sim(/[a-z]+)?|web/charts)|test/scenarios)$$
MUTATION ?=
PREFIX   ?= $(HOME)/.local

.DEFAULT_GOAL := build
.PHONY: build install test test-quick test-live lint fuzz bench golden clients namespaces bpf kube e2e scale proof mutations smuggling peers generate deploy-check check-metrics

# bin/weir, static.
build:
	$(STATIC) $(GO) build -ldflags="-s -w" -o bin/weir ./cmd/weir

# weir, and the two names under which kubectl finds it: as a plugin, and for completion.
install: build
	install -D -m 0755 bin/weir "$(DESTDIR)$(PREFIX)/bin/weir"
	cd "$(DESTDIR)$(PREFIX)/bin" && ln -sf weir kubectl-weir && ln -sf weir kubectl_complete-weir

# All tests that need nothing but Go, a C compiler and the clients: no root, no cluster. What starts no goroutine, the
# decisions of internal/core and the simulator, runs without the race detector: ten times and more faster, and there is nothing
# to race. Tests that carry real traffic run alone, one package after the other: an agent beside which the processors are busy
# rightly sees a slow zone.
test: test-quick test-live

test-quick: clients
	$(GO) list $(PKG) | grep -vE '$(LIVE)|$(SINGLE)' | xargs -r $(GO) test -race -shuffle=on -timeout 20m
	$(GO) list $(PKG) | grep -E '$(SINGLE)' | xargs -r $(GO) test -shuffle=on -timeout 20m

# The race detector has pools forget what they are given, and takes memory: tests of garbage and memory run without it, too.
test-live: clients
	$(GO) list $(PKG) | grep -E '$(LIVE)' | xargs -r $(GO) test -race -shuffle=on -timeout 20m -p 1
	$(GO) test -run 'Garbage|LittleMemory' ./internal/l7

# Modules as recorded and tidy, go vet, golangci-lint.
lint:
	$(GO) mod verify >/dev/null && $(GO) mod tidy -diff && $(STATIC) $(GO) vet $(PKG)
	$(TOOL) golangci-lint run $(PKG)

# Every fuzz target, one after the other, each for FUZZTIME: a number of inputs, as a length of time makes a target fail now
# and then when it is over (golang/go#75804, mended in Go 1.27).
fuzz:
	@GO="$(GO)" test/fuzz.sh $(FUZZTIME)

# Benchmarks whose names match BENCH, COUNT times.
bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)

# Golden files anew, and the goldens inside of scenarios; read the difference as a change of behaviour.
golden:
	$(GO) test $$(grep -rlE 'golden\.Check|flag\.Bool\("update"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -update

# The clients that tests run through the proxy, and the browser that draws charts for them. Installed where that can be done without asking; named where it cannot.
clients:
	@command -v curl >/dev/null && command -v wrk >/dev/null && command -v chromium >/dev/null && command -v haproxy >/dev/null && command -v redis-server >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq curl wrk chromium haproxy redis-server >/dev/null; } || \
	  { echo "the tests need the programs curl, wrk, chromium, haproxy and redis-server: install them with your system's package manager" >&2; exit 1; }

# What tests make namespaces with, in which kube-proxy runs: root, ip, and nft, which kube-proxy calls itself.
namespaces:
	@[ "$$(id -u)" = 0 ] || { echo "make e2e makes network namespaces: run it as root" >&2; exit 1; }
	@command -v nft >/dev/null && command -v ip >/dev/null || \
	  { command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq nftables iproute2 >/dev/null; } || \
	  { echo "the tests need the programs nft and ip: install them with your system's package manager" >&2; exit 1; }

# The tests on a real control plane. Needs root; builds the control plane, and installs nft and ip on Debian. E2EFLAGS='-run X'
# chooses. helm, which some tests run, is built before they start.
e2e: namespaces build kube
	@$(HELM) version >/dev/null
	KUBE_BIN=$$(test/kube/programs/build.sh) WEIR_BIN=$(CURDIR)/bin/weir $(GO) test -tags e2e -count=1 -parallel 4 -timeout 40m -v $(E2EFLAGS) ./test/kube/

# Is the simulator right? Standard scenarios on real sockets beside what it says of them: a table, in about eight minutes
# on a machine with nothing else to do. Not part of test. PROOF=a,b chooses scenarios.
proof: build
	@bin/weir demo --scenario $(PROOF) --output markdown

# The tables of docs/smuggling.md and docs/bad-responses.md: weir beside HAProxy and Envoy, which is installed into the user's cache. Takes
# about ten minutes. RECORD=FILE keeps what endpoints and clients received, byte for byte.
smuggling: clients
	$(GO) test -count=1 -timeout 40m -run 'Requests|Responses' ./test/peers -table $(if $(RECORD),-record $(abspath $(RECORD)))

# What a request costs weir, HAProxy, nginx and Envoy: processor time of each, in ROUNDS interleaved rounds of loads of three seconds, as a
# table. Not part of test; half an hour on a machine with nothing else to do. ROUNDS=1 checks that everything runs.
peers: clients
	@command -v nginx >/dev/null && command -v h2load >/dev/null && [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -qq nginx-light libnginx-mod-stream nghttp2-client >/dev/null; } || \
	  { echo "make peers needs nginx with its stream module and h2load: install them with your system's package manager" >&2; exit 1; }
	$(GO) test -tags peers -count=1 -timeout 3h -run PeersCost ./test/peers -rounds $(ROUNDS) $(if $(filter 1,$(ROUNDS)),-length 1s)

# Do tests notice? Breaks one promise at a time and runs the test that has to fail. Not part of CI. MUTATION='drain trial'
# chooses.
mutations:
	@test/mutations/run $(MUTATION)

# A cluster of 5,000 nodes, 10,000 services and 150,000 endpoints; prints what was measured. Takes about ten minutes.
scale: build kube
	KUBE_BIN=$$(test/kube/programs/build.sh) WEIR_BIN=$(CURDIR)/bin/weir $(GO) test -tags scale -count=1 -timeout 60m -v ./test/kube/scale/

# A real control plane and kube-proxy, built from their modules into the user's cache: minutes the first time.
kube:
	@test/kube/programs/build.sh

# The CustomResourceDefinition and the copying functions, from the types in api/v1alpha1; the plain manifests, rendered from
# the Helm chart.
generate:
	deploy/crd.sh api/v1alpha1 deploy/chart/files/loadbalancingpolicies.yaml $(CRDGEN)
	deploy/render.sh deploy/manifests $(HELM)

# The programs of the kernel data plane, for both byte orders, from internal/kernel/bpf/c; a test notices when they differ from
# their sources. Needs clang and libbpf-dev, which no other verb does: installed on Debian where that can be done without asking.
bpf:
	@command -v clang >/dev/null && [ -e /usr/include/bpf/bpf_helpers.h ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq clang llvm libbpf-dev >/dev/null; } || \
	  { echo "make bpf needs clang, llvm-strip and libbpf-dev: install them with your system's package manager" >&2; exit 1; }
	BPF_INCLUDE=-I/usr/include/$$(uname -m)-linux-gnu $(GO) generate ./internal/kernel/bpf
	cd internal/kernel/bpf && sha256sum c/* objects_bpf* >checksums.txt

# What is generated against its source; the chart with several sets of values; the alert rules against their tests.
deploy-check:
	deploy/check-crd.sh $(CRDGEN)
	deploy/check.sh $(HELM)

# The metrics of a running controller or agent, by Prometheus' own judgement: METRICS=URL, or the text on standard input.
check-metrics:
	@deploy/check-metrics.sh $(METRICS)
