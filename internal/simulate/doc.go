// Package simulate runs comparisons: every scenario with every strategy and several seeds, on all cores. It also makes
// scenarios of real services, to ask what would happen if.
//
// It promises the same results in the same order however many runs are made at once, and an early end when its context
// ends. What happens in a run is package sim's; which of two numbers is better is package score's.
package simulate

// Disclaimer is on every report.
const Disclaimer = "Simulation, not a measurement."

// Assumptions lists what the model takes for granted and what it leaves out, a sentence each, for every report.
func Assumptions() []string {
	return []string{
		"Requests arrive at random (Poisson) at the rates of the scenario, whether or not those before were answered.",
		"Clients know nothing of each other; each has a balancer of its own.",
		"Endpoints serve first come, first served, with a fixed number of workers; requests cost what the scenario's " +
			"distribution of service times says, independently of each other.",
		"The network has a usual round trip within a zone, between zones and between clusters; it is never full.",
		"TLS, limits of HTTP/2 streams and throttling of processors are not modelled.",
		"A new connection costs one round trip. Where it is refused weir and Hazl try two other endpoints by themselves, the " +
			"others none.",
		"All clients use the strategy of the run; mixed fleets are not modelled.",
		"Other balancers are modelled from their documentation, with their default settings.",
		"Money is the price of bytes that cross zones; load balancers, gateways and machines cost nothing.",
	}
}
