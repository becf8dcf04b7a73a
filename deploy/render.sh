#!/usr/bin/env bash
# Renders the plain manifests from the chart, one file for each file of templates: render.sh FOLDER HELM…
#
# What lies in FOLDER (deploy/manifests) is what the chart renders with its default values, and the namespace; what lies in
# its folder optional is to be applied by choice. Nothing in them says that helm owns it.
set -euo pipefail
cd "$(dirname "$0")/.."
manifests=$1

# render TARGET TEMPLATES [FLAGS…]: TEMPLATES are names with commas between.
render() {
  local target=$manifests/$1 show=() name
  for name in ${2//,/ }; do show+=(--show-only "templates/$name.yaml"); done
  shift 2
  {
    echo "# Rendered from deploy/chart by \"make generate\": do not edit."
    "${helm[@]}" template weir deploy/chart --namespace weir-system --kube-version 1.36.3 "${show[@]}" "$@" |
      sed -E '/^# Source: /d; /^ *helm\.sh\//d; /managed-by: Helm$/d; /^  annotations:$/d; /^---$/{x; s/^/x/; /^x$/{x; d}; x}'
  } >"$target.new"
  mv "$target.new" "$target"
}

helm=("${@:2}")
mkdir -p "$manifests/optional"
# The number puts it before what lies in it where a folder is applied.
render 0-namespace.yaml namespace --set namespace.create=true
for name in crd rbac controller webhook; do render $name.yaml $name; done
render optional/agent.yaml namespace,agent --set namespace.create=true,agent.enabled=true
render optional/clusters.yaml clusters --set agent.enabled=true,agent.clusterSecrets=weir-clusters
render optional/cleanup.yaml cleanup
