#!/usr/bin/env bash
# Generates what follows from the types in api/v1alpha1: crd.sh TYPES CRD GENERATOR…
#
# TYPES is the folder for the functions that copy objects, CRD the file for the CustomResourceDefinition. The generator's
# annotation is left out: which version of it was used is in tools-crd.mod. The generator knows nothing of types that are integers
# or text but for its own: conf.Number marks itself as type int-or-string, which becomes the anyOf that an API server knows.
set -euo pipefail
cd "$(dirname "$0")/.."
types=$1 crd=$2
generator=("${@:3}")

mkdir -p "$types"
"${generator[@]}" object paths=./api/v1alpha1 output:object:dir="$types"
{
  echo "# Generated from api/v1alpha1 by \"make generate\": do not edit."
  "${generator[@]}" crd paths=./api/v1alpha1 output:crd:stdout |
    sed -E '/^---$/d; /^  annotations:$/d; /^    controller-gen\./d' | tac | awk '
      /^ *type: int-or-string$/ { pending = index($0, "t"); next }
      pending && match($0, /[^ ]/) < pending {
        i = sprintf("%" pending-1 "s", ""); pending = 0
        print i "- type: string"; print i "- type: integer"; print i "anyOf:"
      }
      { print }' | tac
} >"$crd.new"
mv "$crd.new" "$crd"
