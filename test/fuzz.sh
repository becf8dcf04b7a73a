#!/usr/bin/env bash
# fuzz.sh FUZZTIME: runs every fuzz target, one after the other, each for FUZZTIME. The test binary of a package is linked once for
# all of its targets. Run it at the root of the repository; GO names the go command.
#
# Interesting inputs are hardly minimized, which would be most of the work. Those that are found stay in the build cache, where
# go test -fuzz keeps them.
set -euo pipefail
go=${GO:-go}
binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
for dir in $(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do
  "$go" test -c -fuzz . -o "$binary" "$dir"
  cache=$("$go" env GOCACHE)/fuzz/$("$go" list "$dir")
  for target in $(grep -hEo '^func Fuzz[A-Za-z0-9]+' "$dir"/*_test.go | cut -d ' ' -f 2); do
    echo "$dir $target"
    (cd "$dir" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$1" -test.fuzzminimizetime 10x -test.fuzzcachedir "$cache")
  done
done
