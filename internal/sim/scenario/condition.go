package scenario

import "time"

// Condition is what is wrong with an endpoint, by faults that steps name. The zero value is nothing: a healthy one.
type Condition struct {
	Slow   float64       // factor on service times; 0: 1
	Fail   float64       // fraction of requests that are answered with an error, at once
	Delay  time.Duration // of each round trip, half of it there and half back
	Hang   bool          // takes requests and never answers
	Refuse bool          // refuses connections, and has reset those that it had
}

// Apply lets the fault of a step begin, or with Heal all of them end. Verbs that are no fault of an endpoint change
// nothing: Lose and Return are about its node.
func (c *Condition) Apply(st *Step) {
	switch st.Verb {
	case Slow:
		c.Slow = st.Factor
	case Delay:
		c.Delay = st.Time
	case Fail:
		c.Fail = st.Ratio
	case Hang:
		c.Hang = true
	case Refuse:
		c.Refuse = true
	case Heal:
		*c = Condition{}
	default:
	}
}

// Factor is what service times are multiplied by.
func (c *Condition) Factor() float64 {
	if c.Slow == 0 {
		return 1
	}
	return c.Slow
}
