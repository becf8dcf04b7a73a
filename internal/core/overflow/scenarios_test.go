package overflow_test

import (
	"time"
)

// scenario is a layout and what happens to it under stress.
type scenario struct {
	name       string
	layout     layout
	begin, end func(w *world) // of the stress; nil: nothing
	discovery  time.Duration  // after which zone 0 is taken out of the clients' scenes; 0: never
	affected   []int          // zones whose clients count
}

// scenarios are those of docs/adr/0006-overflow-law.md that show something of their own. In zone 0 unless said
// otherwise.
func scenarios() []scenario {
	return []scenario{
		calm("steady", nil),
		rates("skew 70 %", []float64{1386, 297, 297}),
		rates("spike x3", []float64{460, 460, 460}, 3),
		broken("brownout x10", 1, func(s *server) { s.slow = 10 }),
		broken("+200 ms network", 1, func(s *server) { s.delay = 200 * time.Millisecond }),
		broken("half fail", 2, func(s *server) { s.fails = 1 }),
		broken("A fails 50 %", 1, func(s *server) { s.fails = .5 }),
		lost("zone lost", time.Second),
		lost("zone lost, 10 s timeout", 10*time.Second),
		hotNeighbour(),
		uneven(),
		manyClients(),
		everywhere("all at 110 %", func(w *world) { w.rates = []float64{1320, 1320, 1320} }),
		everywhere("all 60 ms slower", func(w *world) {
			for _, s := range w.servers {
				s.delay = 60 * time.Millisecond
			}
		}),
		calm("2 % long polls", func(l *layout) { l.polls, l.timeout = .02, 10*time.Second }),
		calm("CV 2.5", func(l *layout) { l.cv = 2.5 }),
	}
}

// named finds a scenario.
func named(name string) scenario {
	for _, sc := range scenarios() {
		if sc.name == name {
			return sc
		}
	}
	panic("no scenario " + name)
}

// calm is a scenario in which nothing happens.
func calm(name string, change func(*layout)) scenario {
	l := usual()
	if change != nil {
		change(&l)
	}
	return scenario{name: name, layout: l, affected: []int{0}}
}

// heal undoes what was done to the endpoints and to the traffic.
func heal(rates []float64) func(*world) {
	return func(w *world) {
		w.rates = rates
		for _, s := range w.servers {
			s.slow, s.fails, s.delay, s.lost = 1, 0, 0, false
		}
	}
}

// rates changes the traffic: to the rates given, or to those with zone 0 times a factor.
func rates(name string, to []float64, times ...float64) scenario {
	sc := calm(name, nil)
	if len(times) > 0 {
		sc.layout.rates = to
		to = append([]float64{to[0] * times[0]}, to[1:]...)
	}
	sc.begin, sc.end = func(w *world) { w.rates = to }, heal(sc.layout.rates)
	return sc
}

// broken does something to every nth endpoint of zone 0.
func broken(name string, nth int, change func(*server)) scenario {
	sc := calm(name, nil)
	sc.begin, sc.end = func(w *world) {
		for i, s := range w.zone(0) {
			if i%nth == 0 {
				change(s)
			}
		}
	}, heal(sc.layout.rates)
	return sc
}

// lost makes zone 0 swallow everything; discovery notices after 40 s.
func lost(name string, timeout time.Duration) scenario {
	sc := broken(name, 1, func(s *server) { s.lost = true })
	sc.layout.timeout, sc.discovery = timeout, 40*time.Second
	return sc
}

// everywhere changes all zones.
func everywhere(name string, begin func(*world)) scenario {
	sc := calm(name, nil)
	sc.begin, sc.end, sc.affected = begin, heal(sc.layout.rates), []int{0, 1, 2}
	return sc
}

// hotNeighbour overloads zone 0 while zone 1 is at 88 % with its own clients, and zone 2 has room.
func hotNeighbour() scenario { return rates("hot neighbour", []float64{1500, 1056, 660}) }

// uneven has one endpoint in two zones and five in the other, with equal traffic: overload from the first request on.
func uneven() scenario {
	sc := calm("5/1/1", func(l *layout) {
		l.endpoints = []int{5, 1, 1}
		l.rates = []float64{257, 257, 257}
	})
	sc.affected = []int{0, 1, 2}
	return sc
}

// manyClients is 600 clients of 3 requests a second; zone 0's send twice as many under stress.
func manyClients() scenario {
	sc := rates("600 clients, x2", []float64{600, 600, 600}, 2)
	sc.layout.clients = make([]float64, 200)
	for i := range sc.layout.clients {
		sc.layout.clients[i] = 1. / 200
	}
	return sc
}
