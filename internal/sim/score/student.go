package score

import "math"

// confidence is the probability that an interval covers the truth.
const confidence = 0.95

// student gives how many standard errors either side of a mean the confidence interval reaches, with so many degrees of
// freedom (at least 1). Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4: closed forms
// for whole degrees of freedom in the angle whose tangent is t over the root of the degrees. Bisected, as there is no
// closed form of the inverse.
func student(freedom int) float64 {
	const halvings = 60 // more than a float64 can tell apart
	low, high := 0.0, math.Pi/2
	for range halvings {
		middle := (low + high) / 2
		if central(middle, freedom) < confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(float64(freedom)) * math.Tan(low)
}

// central is the probability that Student's t is at most the one of this angle, either side of zero.
func central(angle float64, freedom int) float64 {
	sin, cos := math.Sincos(angle)
	odd := freedom%2 == 1
	term := 1.0
	k := 0
	if odd {
		term, k = cos, 1
	}
	sum := 0.0
	for ; k <= freedom-2; k += 2 {
		sum += term
		term *= cos * cos * float64(k+1) / float64(k+2)
	}
	if odd {
		return (angle + sin*sum) * 2 / math.Pi
	}
	return sin * sum
}

// meanAndHalf gives the mean of values and half of its confidence interval; 0 when there are fewer than two.
func meanAndHalf(values []float64) (middle, half float64) {
	middle = mean(values)
	n := float64(len(values))
	if n < 2 {
		return middle, 0
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - middle) * (v - middle)
	}
	return middle, student(len(values)-1) * math.Sqrt(squares/(n-1)/n)
}

// mean of nothing is 0. It counts from the first value, so that equal values have exactly that mean.
func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	above := 0.0
	for _, v := range values {
		above += v - values[0]
	}
	return values[0] + above/float64(len(values))
}
