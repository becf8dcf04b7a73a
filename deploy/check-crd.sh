#!/usr/bin/env bash
# Checks that what is generated from the types in api/v1alpha1 is what they give: check-crd.sh GENERATOR…
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

deploy/crd.sh "$work" "$work/loadbalancingpolicies.yaml" "$@"
for pair in api/v1alpha1:zz_generated.deepcopy.go deploy/chart/files:loadbalancingpolicies.yaml; do
  diff -u "${pair%:*}/${pair#*:}" "$work/${pair#*:}" || { echo "${pair/://} is not what the types give: run \"make generate\"" >&2; exit 1; }
done
echo "the CustomResourceDefinition is what the types give"
