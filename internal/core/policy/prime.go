package policy

// IsPrime tells whether n is a prime number.
func IsPrime(n int64) bool {
	if n < 4 {
		return n >= 2
	}
	if n%2 == 0 {
		return false
	}
	for d := int64(3); d <= n/d; d += 2 {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// NextPrime gives the smallest prime of at least n that a table may have as its size; false if there is none.
func NextPrime(n int64) (int64, bool) {
	for ; n <= MaxTableSize; n++ {
		if IsPrime(n) {
			return n, true
		}
	}
	return 0, false
}
