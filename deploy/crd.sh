#!/usr/bin/env bash
# Generates what follows from the types in api/v1alpha1: crd.sh TYPES CRD GENERATOR…
#
# TYPES is the folder for the functions that copy objects, CRD the file for the CustomResourceDefinition. The generator's
# annotation is left out: which version of it was used is in tools-crd.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
types=$1 crd=$2
generator=("${@:3}")

mkdir -p "$types"
"${generator[@]}" object paths=./api/v1alpha1 output:object:dir="$types"
{
  echo "# Generated from api/v1alpha1 by \"make generate\": do not edit."
  "${generator[@]}" crd paths=./api/v1alpha1 output:crd:stdout |
    sed -E '/^---$/d; /^  annotations:$/d; /^    controller-gen\./d'
} >"$crd.new"
mv "$crd.new" "$crd"
