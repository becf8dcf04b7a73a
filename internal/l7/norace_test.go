//go:build !race

package l7_test

const raceEnabled = false
