#!/usr/bin/env bash
# Has promtool judge the metrics of a running program: check-metrics.sh [URL], or the text on standard input. A token for
# a controller's metrics is taken from $TOKEN. What is said of metrics that are not ours to name, those of libraries and
# those that Kubernetes named, is shown and does not count.
set -euo pipefail
promtool=$("$(dirname "$0")/promtool.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
  # The certificate of a controller's metrics is signed by nobody.
  curl --silent --show-error --fail --insecure ${TOKEN:+--header "Authorization: Bearer $TOKEN"} "$1" >"$work/metrics"
else
  cat >"$work/metrics"
fi
grep -q '^weir_' "$work/metrics" || { echo "no metric of weir's is among them" >&2; exit 1; }
"$promtool" check metrics <"$work/metrics" >"$work/said" 2>&1 || true
sed 's/^/  /' "$work/said"
if grep -qE '^(weir_|error while linting)' "$work/said"; then
  exit 1
fi
echo "$(grep -c '^# TYPE weir_' "$work/metrics") metrics of weir's are well named"
