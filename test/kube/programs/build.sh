#!/usr/bin/env bash
# Builds the programs of a real Kubernetes control plane, and kube-proxy, from the Go modules that go.mod here pins, into
# the folder $KUBE_BIN (default: a folder of the version in the user's cache), and prints that folder. Takes minutes the
# first time and a moment later.
set -euo pipefail
cd "$(dirname "$0")"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
bin=${KUBE_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/kube-$version}
stamp=$bin/built-from
sum=$(cat go.mod go.sum build.sh | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
  mkdir -p "$bin"
  echo "building etcd and Kubernetes $version into $bin, which takes some minutes the first time" >&2
  # The programs tell their version, and clients refuse one that they cannot read.
  IFS=. read -r major minor _ <<<"${version#v}"
  flags="-s -w"
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $p.gitVersion=$version -X $p.gitMajor=$major -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
  done
  CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$bin/" tool
  mv "$bin/server" "$bin/etcd"
  echo "$sum" >"$stamp"
fi
echo "$bin"
