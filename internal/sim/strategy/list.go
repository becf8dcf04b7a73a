package strategy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// All lists the strategies with their defaults, in the order of tables.
func All() []Strategy { return With(overflow.Config{}) }

// With lists the same, weir's and Hazl's strategies made with c, which is one that overflow.New accepts: a strategy that
// is made with another panics.
func With(c overflow.Config) []Strategy {
	return []Strategy{
		random(),
		static("static-auto", "kube-proxy, Auto", topology.ModeAuto),
		static("static-same-zone", "kube-proxy, PreferSameZone", topology.ModePreferSameZone),
		static("hints-balanced", "weir's hints, Balanced", topology.ModeBalanced),
		envoyZone(),
		envoyLoadAware(),
		priority(),
		hazl(c),
		weir("weir", "weir", c),
		oracle(),
	}
}

// variants are weir with a preference that a user may set.
func variants() []Strategy {
	return []Strategy{
		weir("weir-cost", "weir, prefer cost", overflow.Config{Prefer: overflow.PreferCost}),
		weir("weir-latency", "weir, prefer latency", overflow.Config{Prefer: overflow.PreferLatency}),
		weir("weir-shed", "weir, overload shed", overflow.Config{Shed: true}),
	}
}

// Named gives the strategy of that name, with its defaults; upper and lower case are the same. Beside those of All it
// knows weir-cost, weir-latency and weir-shed.
//
// Errors: a name that is none; it lists those that are.
func Named(name string) (Strategy, error) {
	all := slices.Concat(All(), variants())
	if strings.EqualFold(name, "static-balanced") { // its name in the first releases
		return Strategy{}, fmt.Errorf("strategy static-balanced is called hints-balanced now")
	}
	names := make([]string, 0, len(all))
	for _, c := range all {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if near, ok := topology.Nearest(name, names); ok {
		return Strategy{}, fmt.Errorf("unknown strategy %q: did you mean %s? There are %s", name, near, strings.Join(names, ", "))
	}
	return Strategy{}, fmt.Errorf("unknown strategy %q: want one of %s", name, strings.Join(names, ", "))
}

// random is a service without hints behind kube-proxy: any endpoint, wherever it is.
//
// Source: kube-proxy's documentation of virtual IPs. It chooses for each connection; choosing for each request spreads
// better, which is kind to it.
func random() Strategy {
	return Strategy{
		Name: "random", Title: "kube-proxy, no hints", Source: kubeProxySource,
		Mode: topology.ModeDisabled, KeepsHome: true, New: fixed("Random"), Pool: atRandom(), Blind: true,
	}
}

// static is kube-proxy with hints of a mode: any endpoint of those that the hints give the client, and no other,
// however they fare until the API says that they are not ready.
//
// Source: KEP-2433 for Auto, KEP-4444 for PreferSameZone, weir's plan for Balanced, which no other controller writes;
// kube-proxy as random has it.
func static(name, title string, mode topology.Mode) Strategy {
	return Strategy{
		Name: name, Title: title, Source: kubeProxySource,
		Mode: mode, KeepsHome: true, New: fixed("Static"), Pool: atRandom(), Blind: true,
	}
}

const kubeProxySource = "https://kubernetes.io/docs/reference/networking/virtual-ips/"

// atRandom is how kube-proxy chooses, and nothing is ejected.
func atRandom() pick.Config {
	return pick.Config{Algorithm: pick.Random, Config: balance.Config{Health: health.Config{Failures: -1}}}
}

// hazl is Buoyant's high availability zonal load balancing: what adds and removes endpoints is core/overflow's Hazl,
// which says its sources and simplifications; what chooses among them is Linkerd's two choices by peak EWMA, whose part
// PowerOfTwo plays; and endpoints that fail are ejected by Linkerd's breaker. A published measurement is replayed in the tests.
//
// Source: Buoyant's HAZL reference, and Linkerd's circuit-breaking reference for the defaults of its breaker, which is
// off unless a service asks for it: here all do. When all that are active are ejected the pool goes on to other endpoints
// at once, where the product would add them one by one.
func hazl(c overflow.Config) Strategy {
	return Strategy{
		Name: "hazl", Title: "Hazl", Source: "https://docs.buoyant.io/buoyant-enterprise-linkerd/latest/reference/hazl/",
		Mode: topology.ModePreferSameZone, New: adaptive("Hazl", c),
		Pool: pick.Config{Algorithm: pick.PowerOfTwo, Config: balance.Config{Health: health.Config{
			Failures: 7, Pause: time.Second, MaxPause: time.Minute, Jitter: 0.5, MaxOut: 1, Rate: noRate,
			WhateverLoad: true,
		}}},
		Reconnects: reconnects,
	}
}

// reconnects is what weir's agent does by default: three attempts. Linkerd's proxy leaves endpoints out that it has no
// connection to, and is taken to do as well.
const reconnects = 2

// noRate is a fraction of failed requests that is never reached: it turns the rate rule off, which is weir's own.
const noRate = 2

// weir is what the agent runs by default, in the mode that weir's controller plans for.
func weir(name, title string, c overflow.Config) Strategy {
	return Strategy{
		Name: name, Title: title, Source: "docs/overflow-law.md",
		Mode: topology.ModeBalanced, New: adaptive("Weir", c), Pool: pick.Config{Algorithm: pick.PowerOfTwo}, Drains: true,
		Reconnects: reconnects,
	}
}

// OracleName is the limit: no client could run it.
const OracleName = "oracle"

// oracle knows what each endpoint can do and what each client sends, at each instant. Package sim plays it.
func oracle() Strategy {
	return Strategy{
		Name: OracleName, Title: "oracle (limit)", Source: "internal/sim/oracle.go",
		Mode: topology.ModeDisabled, KeepsHome: true, New: fixed("Random"), Pool: atRandom(), Blind: true,
		Omniscient: true, Reconnects: reconnects,
	}
}

// fixed makes strategies that have nothing to be configured.
func fixed(name string) func(Client) overflow.Strategy { return adaptive(name, overflow.Config{}) }

// adaptive makes strategies that are the same for all clients.
func adaptive(name string, c overflow.Config) func(Client) overflow.Strategy {
	return func(Client) overflow.Strategy { return must(overflow.New(name, c)) }
}

func must(s overflow.Strategy, err error) overflow.Strategy {
	if err != nil {
		panic("strategy: one was given a config that makes no sense: " + err.Error())
	}
	return s
}
