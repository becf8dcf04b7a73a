#!/usr/bin/env bash
# Installs the Autobahn test suite for WebSocket, as the Python package index has it, into the user's cache, and prints a command that runs wstest.
# Its code is for Python 2.7, which Debian has no more: PYTHON2 names one (default: python2.7).
set -euo pipefail
version=25.10.1
python=${PYTHON2:-python2.7}
folder=${XDG_CACHE_HOME:-$HOME/.cache}/weir/autobahn-$version
if [ ! -e "$folder/done" ]; then
  "$python" -m pip --version >/dev/null 2>&1 || {
    echo "the Autobahn test suite $version needs Python 2.7 with pip: set PYTHON2 to one" >&2
    exit 1
  }
  echo "installing the Autobahn test suite $version into $folder" >&2
  rm -rf "$folder"
  # What it requires, but for the accelerators of its autobahn, whose builds fail today.
  "$python" -m pip install --quiet --target "$folder" txaio==2.1.0 incremental==16.10.1 pyOpenSSL==19.1.0 cryptography==3.3.2 \
    Twisted==19.10.0 zope.interface==4.6.0 jinja2==2.11.3 markupsafe==1.1.1 Werkzeug==1.0.1 klein==17.10.0 service_identity==18.1.0 \
    six==1.16.0 autobahn==0.10.9 setuptools==44.0.0 unittest2==1.1.0 >&2
  "$python" -m pip install --quiet --no-deps --target "$folder" "autobahntestsuite==$version" >&2
  touch "$folder/zope/__init__.py" # a namespace package, which --target does not make one
  cat >"$folder/wstest" <<END
#!/bin/sh
PYTHONPATH="$folder" exec "$python" -c 'from autobahntestsuite.wstest import run; run()' "\$@"
END
  chmod +x "$folder/wstest"
  touch "$folder/done"
fi
echo "$folder/wstest"
