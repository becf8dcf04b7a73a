package topology

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear bounds how many names Near gives: what fits a line of an error.
const maxNear = 5

// Near lists those of names that were most likely meant by name, the closest first and at most five, so that an error
// about an unknown name can help.
func Near(name string, names []string) []string {
	sorted := slices.Clone(names)
	distance := make(map[string]int, len(names))
	for _, n := range names {
		distance[n] = editDistance(name, n)
	}
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), strings.Compare(a, b))
	})
	return sorted[:min(len(sorted), maxNear)]
}

// Nearest gives the one of names that was most likely meant by name, in upper or lower case; false: they are all too
// far away, with more than a third of the letters wrong, rounded up.
func Nearest(name string, names []string) (string, bool) {
	const part = 3
	best, least := "", (len(name)+part-1)/part
	for _, n := range names {
		if d := editDistance(strings.ToLower(name), strings.ToLower(n)); d <= least && (best == "" || d < least) {
			best, least = n, d
		}
	}
	return best, best != ""
}

// editDistance counts the bytes to insert, delete or replace to turn a into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
