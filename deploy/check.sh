#!/usr/bin/env bash
# Checks the chart, the manifests rendered from it and the alert rules: check.sh HELM…
set -euo pipefail
cd "$(dirname "$0")/.."
helm=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

template() { "${helm[@]}" template weir deploy/chart --namespace weir-system --kube-version 1.36.3 "$@"; }

# refused WORDS FLAGS…: the chart does not take these values, and its message has the words.
refused() {
  if template "${@:2}" >/dev/null 2>"$work/refused"; then
    echo "the chart takes ${*:2}, which it should refuse" >&2
    exit 1
  fi
  grep -q -- "$1" "$work/refused" || { cat "$work/refused" >&2; exit 1; }
}

for values in "" deploy/chart/ci/*-values.yaml; do
  flags=(${values:+--values "$values"})
  "${helm[@]}" lint deploy/chart --strict --quiet --kube-version 1.36.3 "${flags[@]}"
  template "${flags[@]}" >"$work/rendered.yaml"
  echo "rendered ${values:-the default values}: $(grep -c '^kind: ' "$work/rendered.yaml") objects"
done
refused "additional properties 'mange' not allowed" --set controller.mange=all
refused "controller/defaultDistribution" --set controller.defaultDistribution=Sometimes
refused "webhook/timeoutSeconds" --set webhook.timeoutSeconds=31

deploy/render.sh "$work/manifests" "${helm[@]}"
diff -ru deploy/manifests "$work/manifests" || { echo 'deploy/manifests is not what the chart renders: run "make generate"' >&2; exit 1; }
echo "deploy/manifests is what the chart renders"

promtool=$(deploy/promtool.sh)
"$promtool" check rules deploy/alerts/weir.rules.yaml
"$promtool" test rules deploy/alerts/weir.rules.test.yaml

# The dashboard's queries, as rules, because promtool reads nothing else. Grafana fills in what begins with a dollar.
{
  echo "groups: [{name: dashboard, rules: ["
  sed -nE 's/^ *"expr": (".*"),$/{record: dashboard:query, labels: {query: q}, expr: \1},/p' deploy/dashboards/weir.json |
    sed 's/\$__rate_interval/5m/g; s/\$service/.*/g' | awk '{sub("query: q", "query: q" NR); print}'
  echo "]}]"
} >"$work/dashboard.yaml"
"$promtool" check rules "$work/dashboard.yaml"
