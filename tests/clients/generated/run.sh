#!/usr/bin/env bash
# Generates clients from the /openapi.json of a running service in Python, TypeScript and Rust, compiles them, and calls the
# service with them. tests/clients/run.sh does this with `oddsbox demo`.
#   BASE_URL=http://… KEY=sk_live_… tests/clients/generated/run.sh DIRECTORY
# What is installed and generated goes into DIRECTORY. TypeScript is left out where Node.js 20 or npm is missing, Python where
# openapi-generator finds no Java runtime.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
kept=$(cd "$1" && pwd)
status=0
run() { "$@" || { echo "FAILED: $*" >&2; status=1; }; }

python3 -c 'import sys, urllib.request as u; u.urlretrieve(sys.argv[1], sys.argv[2])' "$BASE_URL/openapi.json" "$kept/openapi.json"

[ -x "$kept/venv/bin/python" ] || python3 -m venv "$kept/venv"
"$kept/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile -r "$here/requirements.txt"
generator=$kept/venv/bin/openapi-generator-cli
if "$generator" version >/dev/null 2>&1; then
  rm -rf "$kept/python"
  "$generator" generate -i "$kept/openapi.json" -g python -o "$kept/python" --package-name oddsbox_client \
    --schema-mappings Price=object,V4Time=object --additional-properties disallowAdditionalPropertiesIfNotPresent=false \
    >"$kept/python.log" 2>&1 || { cat "$kept/python.log" >&2; exit 1; }
  run env PYTHONPATH="$kept/python" "$kept/venv/bin/python" "$here/client.py"
else
  echo "openapi-generator finds no Java runtime (apt install default-jre-headless): the client in Python is left out"
fi

if node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null && command -v npm >/dev/null; then
  mkdir -p "$kept/typescript"
  cd "$kept/typescript"
  cp "$here"/{client.ts,package.json,package-lock.json,tsconfig.json} .
  npm ci --ignore-scripts --no-audit --no-fund --silent
  node_modules/.bin/openapi-typescript "$kept/openapi.json" -o oddsbox.ts >"$kept/typescript.log" 2>&1 ||
    { cat "$kept/typescript.log" >&2; exit 1; }
  run node_modules/.bin/tsc -p .
  run node client.js
else
  echo "Node.js 20 or newer, or npm, is not installed: the client in TypeScript is left out"
fi

OPENAPI=$kept/openapi.json cargo build --locked --quiet --manifest-path "$here/rust/Cargo.toml" --target-dir "$kept/rust"
run "$kept/rust/debug/oddsbox-generated-client"
exit "$status"
