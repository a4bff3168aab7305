#!/usr/bin/env bash
# Runs clients of The Odds API that others wrote, unchanged, against two servers: `oddsbox demo`, and one that holds the files
# of payloads/ and nothing else. Only the base URL of the clients differs. samples/ makes the calls of the vendor's samples.
# fair.py compares the fair prices of a third server with those of published packages. stream/ follows the stream of a fourth
# by published clients of server-sent events. mcp/ calls the tools of the first with the official clients of the Model Context
# Protocol, and as the guide says. generated/ calls it with clients that are generated from its OpenAPI document.
#   tests/clients/run.sh
# Needs python3 with venv, a C compiler, pkg-config and OpenSSL's headers (for the Rust client), and reaches the package
# registries of Python, Rust and npm. What is in JavaScript and PHP is left out where node, npm or php is missing. Everything is
# installed into a directory of its own, kept in CLIENTS_DIR if that is set.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing\n  python3 with venv: apt install python3-venv"
command -v cargo >/dev/null || missing="$missing\n  cargo: install Rust"
command -v pkg-config >/dev/null || missing="$missing\n  pkg-config: apt install pkg-config"
if command -v pkg-config >/dev/null && ! pkg-config --exists openssl; then
  missing="$missing\n  OpenSSL's headers: apt install libssl-dev"
fi
if [ -n "$missing" ]; then
  printf 'Missing here, and how to install it:%b\n' "$missing" >&2
  exit 2
fi

scratch=$(mktemp -d)
servers=()
finish() {
  for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT
kept=${CLIENTS_DIR:-$scratch}
mkdir -p "$kept"
kept=$(cd "$kept" && pwd)

echo "building the service and the clients"
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --locked --quiet
cargo build --locked --quiet --manifest-path tests/clients/rust/Cargo.toml --target-dir "$kept/rust"
[ -x "$kept/venv/bin/python" ] || python3 -m venv "$kept/venv"
install() { "$kept/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile "$@"; }
install -r tests/clients/requirements.txt
install --no-deps -r tests/clients/requirements-no-deps.txt
# They want another version of pandas than the clients.
[ -x "$kept/fair-venv/bin/python" ] || python3 -m venv "$kept/fair-venv"
"$kept/fair-venv/bin/pip" install --quiet --disable-pip-version-check --no-compile -r tests/clients/requirements-fair.txt
# Its HTTP client is another one than that of the clients.
[ -x "$kept/mcp-venv/bin/python" ] || python3 -m venv "$kept/mcp-venv"
"$kept/mcp-venv/bin/pip" install --quiet --disable-pip-version-check --no-compile -r tests/clients/requirements-mcp.txt
has_node=
if node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null && command -v npm >/dev/null; then
  has_node=yes
  mkdir -p "$kept/stream"
  # The program too, as node looks for packages beside it.
  cp tests/clients/stream/package.json tests/clients/stream/package-lock.json tests/clients/stream/follow_eventsource.mjs "$kept/stream"
  npm ci --prefix "$kept/stream" --ignore-scripts --no-audit --no-fund --silent
  mkdir -p "$kept/mcp"
  cp tests/clients/mcp/package.json tests/clients/mcp/package-lock.json tests/clients/mcp/*.mjs "$kept/mcp"
  npm ci --prefix "$kept/mcp" --ignore-scripts --no-audit --no-fund --silent
fi

oddsbox=$target/debug/oddsbox
# Starts a server in a directory of its own and waits for a line of its output.
start() {
  local name=$1 line=$2
  shift 2
  ODDSBOX_LOG=warn "$oddsbox" --data "$scratch/$name" "$@" --listen 127.0.0.1:0 >"$scratch/$name.out" 2>"$scratch/$name.err" &
  servers+=($!)
  for _ in $(seq 240); do
    if grep -q "$line" "$scratch/$name.out"; then return; fi
    kill -0 "${servers[-1]}" 2>/dev/null || break
    sleep 0.25
  done
  echo "oddsbox $1 did not start" >&2
  cat "$scratch/$name.err" >&2
  exit 1
}
address() { sed -n 's/^ *listening on \(http[^ ]*\).*/\1/p' "$scratch/$1.out"; }

start demo 'production key' demo
BASE_URL=$(address demo)
KEY=$(sed -n 's/^ *production key *\(sk_[^ ]*\).*/\1/p' "$scratch/demo.out")

# Ingested before the server starts, so that everything is published when it listens.
NOW=$(date +%s)
export NOW
mkdir "$scratch/filled"
python3 tests/clients/fill_times.py "$scratch/filled" tests/clients/payloads/*.json
for file in "$scratch"/filled/*.json; do
  case $file in */soccer_*) format=decimal ;; *) format=american ;; esac
  "$oddsbox" --data "$scratch/payloads" ingest --format the-odds-api --odds-format "$format" --regions eu --strict "$file" \
    >"$scratch/ingest.out" || { cat "$scratch/ingest.out" >&2; exit 1; }
done
PAYLOAD_KEY=$("$oddsbox" --data "$scratch/payloads" keys issue --live --name clients --approved-by tests --json |
  sed 's/.*"key":"\([^"]*\)".*/\1/')
start payloads 'listening on' serve
PAYLOAD_URL=$(address payloads)
export BASE_URL KEY PAYLOAD_URL PAYLOAD_KEY

python3 tests/clients/fair.py write "$scratch/fair.ndjson"
"$oddsbox" --data "$scratch/fair" ingest --strict "$scratch/fair.ndjson" >"$scratch/ingest.out" ||
  { cat "$scratch/ingest.out" >&2; exit 1; }
FAIR_KEY=$("$oddsbox" --data "$scratch/fair" keys issue --live --name fair --approved-by tests --json |
  sed 's/.*"key":"\([^"]*\)".*/\1/')
start fair 'listening on' serve

# Prices that change every second.
ODDSBOX_REFRESH=1s start stream 'production key' demo
STREAM_KEY=$(sed -n 's/^ *production key *\(sk_[^ ]*\).*/\1/p' "$scratch/stream.out")

status=0
run() { "$@" || { echo "FAILED: $*" >&2; status=1; }; }
# First, while its prices are not stale.
run env BASE_URL="$(address fair)" KEY="$FAIR_KEY" "$kept/fair-venv/bin/python" tests/clients/fair.py compare
run "$kept/venv/bin/python" tests/clients/clients.py
run "$kept/rust/debug/oddsbox-v4-client"
run "$kept/venv/bin/python" tests/clients/markets.py
run "$kept/venv/bin/python" tests/clients/samples/python.py
follow() { run env BASE_URL="$(address stream)" KEY="$STREAM_KEY" "$@"; }
follow "$kept/venv/bin/python" tests/clients/stream/follow_httpx.py
run "$kept/mcp-venv/bin/python" tests/clients/mcp/client.py
run tests/clients/generated/run.sh "$kept/generated"
if [ -n "$has_node" ]; then
  follow node "$kept/stream/follow_eventsource.mjs"
  run node "$kept/mcp/client.mjs"
  # There npx finds the bridge that is installed.
  guide=$PWD/src/http/docs/guide/api.md
  (cd "$kept/mcp" && GUIDE=$guide node configuration.mjs) || { echo "FAILED: configuration.mjs" >&2; status=1; }
else
  echo "Node.js 20 or newer, or npm, is not installed: eventsource and the client of MCP in TypeScript are left out"
fi
if node -e 'process.exit(typeof fetch === "function" ? 0 : 1)' 2>/dev/null; then
  run node tests/clients/samples/nodejs.mjs
  run node tests/clients/samples/apps_script.mjs
else
  echo "Node.js 18 or newer is not installed: samples in Node.js and Apps Script are left out"
fi
if php -r 'exit(PHP_VERSION_ID >= 80000 ? 0 : 1);' 2>/dev/null; then
  run php tests/clients/samples/php.php
else
  echo "PHP 8 or newer is not installed: the sample in PHP is left out"
fi

for server in "${servers[@]}"; do
  kill -0 "$server" || { echo "a server died" >&2; status=1; }
done
if grep -q panicked "$scratch"/*.err; then status=1; fi
[ "$status" = 0 ] || cat "$scratch"/*.err >&2
exit "$status"
