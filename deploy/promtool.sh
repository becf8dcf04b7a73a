#!/usr/bin/env bash
# Prints the path of promtool: that of the system, or else one taken out of Debian's package "prometheus" into the user's
# cache. The package is not installed, because it would bring a server that starts.
set -euo pipefail
if command -v promtool; then exit; fi
folder=${XDG_CACHE_HOME:-$HOME/.cache}/weir/promtool
if [ ! -x "$folder/promtool" ]; then
  command -v apt-get >/dev/null || { echo "promtool is needed: install Prometheus with your system's package manager" >&2; exit 1; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  {
    apt-get download prometheus || { apt-get update -qq && apt-get download prometheus; }
  } >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  dpkg-deb --fsys-tarfile prometheus_*.deb | tar --extract --to-stdout ./usr/bin/promtool >"$work/promtool"
  chmod +x "$work/promtool"
  mkdir -p "$folder"
  mv "$work/promtool" "$folder/promtool"
fi
echo "$folder/promtool"
