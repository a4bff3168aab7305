#!/usr/bin/env bash
# Runs clients of The Odds API that others wrote, unchanged, against `oddsbox demo`: only their base URL differs.
#   tests/clients/run.sh
# Needs python3 with venv, a C compiler, pkg-config and OpenSSL's headers (for the Rust client), and reaches the package
# registries of Python and Rust. Everything is installed into a directory of its own, kept in CLIENTS_DIR if that is set.
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
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
kept=${CLIENTS_DIR:-$scratch}
mkdir -p "$kept"
kept=$(cd "$kept" && pwd)

echo "building the service and the clients"
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --locked --quiet
cargo build --locked --quiet --manifest-path tests/clients/rust/Cargo.toml --target-dir "$kept/rust"
[ -x "$kept/venv/bin/python" ] || python3 -m venv "$kept/venv"
"$kept/venv/bin/pip" install --quiet --disable-pip-version-check -r tests/clients/requirements.txt

ODDSBOX_LOG=warn "$target/debug/oddsbox" --data "$scratch/data" demo --listen 127.0.0.1:0 >"$scratch/out" 2>"$scratch/err" &
server=$!
for _ in $(seq 240); do
  grep -q 'production key' "$scratch/out" && break
  kill -0 "$server" 2>/dev/null || { cat "$scratch/err" >&2; exit 1; }
  sleep 0.25
done
BASE_URL=$(sed -n 's/^ *listening on \(http[^ ]*\).*/\1/p' "$scratch/out")
KEY=$(sed -n 's/^ *production key *\(sk_[^ ]*\).*/\1/p' "$scratch/out")
export BASE_URL KEY

status=0
"$kept/venv/bin/python" tests/clients/clients.py || status=1
"$kept/rust/debug/oddsbox-v4-client" || status=1
kill -0 "$server" || { echo "the server died" >&2; cat "$scratch/err" >&2; exit 1; }
if grep -q panicked "$scratch/err"; then cat "$scratch/err" >&2; exit 1; fi
exit "$status"
