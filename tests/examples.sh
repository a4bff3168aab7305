#!/usr/bin/env bash
# Runs each client of examples/ against `oddsbox demo`, side by side, on one market of its own:
# 200, then 304, then a price that moves, in the same words by each; a key that is none, or spent; a stop by signal.
# Then each client that follows the stream, through a restart of the service.
# A client whose interpreter is not here is named and left out. Takes about 20 seconds once everything is built.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --quiet --bins --example poll --example follow
debug=${CARGO_TARGET_DIR:-target}/debug
scratch=$(mktemp -d)
children=()
finish() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT
fail() { echo "FAILED: $*"; tail -n 20 "$scratch"/*.out "$scratch"/*.err; exit 1; }
oddsbox() { "$debug/oddsbox" --data "$scratch/data" "$@"; }

# Waits until a file has a line that matches.
await() {
  for _ in $(seq 300); do
    if grep -q "$2" "$1"; then return; fi
    sleep 0.1
  done
  fail "no line '$2' in $(basename "$1")"
}

clients=(rust)
present() { if command -v "$1" >/dev/null; then clients+=("$2"); else echo "$1 is not installed: $2 is left out"; fi; }
present python3 python
present node javascript
present curl shell
run() {
  case $1 in
    rust) exec "$debug/examples/poll" "${@:2}" ;;
    python) exec python3 examples/poll.py "${@:2}" ;;
    javascript) exec node examples/poll.mjs "${@:2}" ;;
    shell) exec sh examples/poll.sh "${@:2}" ;;
  esac
}

demo() { # ADDRESS
  ODDSBOX_REFRESH=2s ODDSBOX_LOG=warn "$debug/oddsbox" --data "$scratch/data" demo --listen "$1" \
    >"$scratch/demo.out" 2>"$scratch/demo.err" &
  demo=$!
  children+=("$demo")
  await "$scratch/demo.out" 'listening on'
}
demo 127.0.0.1:0
ODDSBOX_URL=$(sed -n 's/^ *listening on //p' "$scratch/demo.out")
export ODDSBOX_URL
key_with_burst() { oddsbox keys issue --sandbox --name "$1" --burst "$2" --json | sed 's/.*"key":"\([^"]*\)".*/\1/'; }

# A fight that only this script prices, so that nothing moves by chance.
quote() {
  cat <<LINES | oddsbox ingest - --world sandbox --strict >"$scratch/ingest.out"
{"type":"bookmaker","key":"example","title":"Example","regions":["us"]}
{"type":"event","sport":"mma","id":"example","competition":"Examples","commence_time":"2099-01-01T00:00:00Z","home":"Ana Ruiz","away":"Bea Holt","status":"scheduled"}
{"type":"odds","sport":"mma","event":"example","bookmaker":"example","market":"moneyline","last_update":"$(date -u +%FT%TZ)","format":"american","outcomes":[{"name":"Ana Ruiz","price":$1},{"name":"Bea Holt","price":-110}]}
LINES
}
quote -110
path='/v1/sports/mma/odds?event_ids=example'

key=$(key_with_burst moves 1000)
for _ in $(seq 300); do
  (ODDSBOX_KEY=$key run rust --once "$path") 2>"$scratch/published.err"
  if grep -q '^200: 2 prices' "$scratch/published.err"; then break; fi
  sleep 0.1
done
declare -A started
for client in "${clients[@]}"; do
  (ODDSBOX_KEY=$key run "$client" "$path") >"$scratch/$client.out" 2>"$scratch/$client.err" &
  started[$client]=$!
  children+=($!)
done
for client in "${clients[@]}"; do await "$scratch/$client.err" '^200: 2 prices'; await "$scratch/$client.err" '^304'; done
quote 120
for client in "${clients[@]}"; do
  await "$scratch/$client.out" .
  kill -TERM "${started[$client]}"
  wait "${started[$client]}" || fail "$client: a stop is exit code $?"
  [ "$(cat "$scratch/$client.out")" = 'example example moneyline Ana Ruiz: -110 -> 120' ] || fail "$client: the move"
  [ "$(head -n 1 "$scratch/$client.err")" = '200: 2 prices' ] || fail "$client: the first look"
  [ "$(sed -n 2p "$scratch/$client.err")" = '304: nothing new' ] || fail "$client: the second look"
done

for client in "${clients[@]}"; do
  key=$(key_with_burst "$client" 1)
  ended() { # CODE PATTERN KEY ARGUMENTS...: one run to its end
    local code=0
    (ODDSBOX_KEY=$3 run "$client" "${@:4}") >"$scratch/$client.out" 2>"$scratch/$client.err" || code=$?
    [ "$code" = "$1" ] || fail "$client ${*:4}: exit code $code"
    [ "$1" = 2 ] || [ ! -s "$scratch/$client.out" ] || fail "$client ${*:4}: moves at the first look"
    grep -q "$2" "$scratch/$client.err" || fail "$client ${*:4}: no '$2'"
  }
  ended 0 '^200: 2 prices' "$key" --once "$path"
  ended 1 '^429 rate_limited: .*; again in [1-6]' "$key" --count 1 "$path"
  ended 1 '^ODDSBOX_KEY must be a key of this service: oddsbox keys issue' sk_test_ob_none --once
  ended 2 'ODDSBOX_KEY' ''
  ended 1 '^400 invalid_parameter: ' "$(key_with_burst "$client" 9)" --once '/v1/sports/mma/odds?odd_format=decimal'
  ODDSBOX_URL=http://127.0.0.1:1 ended 1 '; again in [12] s' "$key" --once
  echo "$client: ok"
done

# The same fight by the stream: what is missed while the service is away comes afterwards, and nothing else does.
followers=(rust)
for client in "${clients[@]}"; do
  case $client in
    python | javascript) followers+=("$client") ;;
    shell) if command -v jq >/dev/null; then followers+=(shell); else echo "jq is not installed: the shell's follower is left out"; fi ;;
  esac
done
follow() {
  case $1 in
    rust) exec "$debug/examples/follow" "$2" ;;
    python) exec python3 examples/follow.py "$2" ;;
    javascript) exec node examples/follow.mjs "$2" ;;
    shell) exec sh examples/follow.sh "$2" "$scratch/board" ;;
  esac
}
key=$(oddsbox keys issue --sandbox --name streams --streams 9 --json | sed 's/.*"key":"\([^"]*\)".*/\1/')
for client in "${followers[@]}"; do
  (ODDSBOX_KEY=$key follow "$client" 'sports=mma&event_ids=example') >"$scratch/$client.out" 2>"$scratch/$client.err" &
  children+=($!)
done
for client in "${followers[@]}"; do await "$scratch/$client.out" '^ready: 0 changed, 1 on the board'; done
quote 130
for client in "${followers[@]}"; do await "$scratch/$client.out" '^odds: 1 changed, 1 on the board'; done
kill "$demo"
wait "$demo" || fail "the demo did not stop in order"
demo "${ODDSBOX_URL#http://}"
quote 140
for client in "${followers[@]}"; do
  for _ in $(seq 300); do
    if [ "$(grep -c '^odds: 1 changed, 1 on the board' "$scratch/$client.out")" = 2 ]; then break; fi
    sleep 0.1
  done
  expected='ready: 0 changed, 1 on the board
odds: 1 changed, 1 on the board
bye: 0 changed, 1 on the board
odds: 1 changed, 1 on the board'
  [ "$(cat "$scratch/$client.out")" = "$expected" ] || fail "$client: what it followed"
  echo "$client follows: ok"
done
