#!/bin/sh
# A polite poller: prints each price that moves, and asks no more often than there can be something new.
#
#     ODDSBOX_KEY=sk_test_ob_... examples/poll.sh [--once | --count N] [PATH]
#
# PATH is a list of odds, /v1/sports/mma/odds by default; ODDSBOX_URL is http://127.0.0.1:8080 by default. Moves go to
# standard output, everything else to standard error. Needs a POSIX shell and curl.
set -eu

longest_back_off_s=60
path=/v1/sports/mma/odds
count=0 # 0 is no end
while [ $# -gt 0 ]; do
  case $1 in
    --once) count=1 ;;
    --count) count=${2:?--count takes a number} && shift ;;
    /*) path=$1 ;;
    *) echo "usage: ODDSBOX_KEY=... poll.sh [--once | --count N] [PATH]" >&2 && exit 2 ;;
  esac
  shift
done
[ -n "${ODDSBOX_KEY:-}" ] || { echo "Set ODDSBOX_KEY to a key: oddsbox keys issue --sandbox --name me" >&2; exit 2; }
url=${ODDSBOX_URL:-http://127.0.0.1:8080}
url=${url%/}$path

scratch=$(mktemp -d)
pause=
trap 'rm -rf "$scratch"; [ -z "$pause" ] || kill "$pause" 2>/dev/null || :' EXIT
trap 'exit 0' INT TERM

note() { printf '%s\n' "$1" >&2; }
header() { tr -d '\r' <"$scratch/head" | grep -i "^$1:" | sed 's/^[^:]*: *//'; }

# Asks once: the status, or 000 without an answer. The key is read from standard input, as the arguments of a process
# can be seen by everybody on the machine.
ask() {
  { printf 'header = "X-API-Key: %s"\n' "$ODDSBOX_KEY"
    [ ! -s "$scratch/etag" ] || printf 'header = "If-None-Match: %s"\n' "$(sed 's/"/\\"/g' "$scratch/etag")"
  } | curl --config - --silent --show-error --compressed --max-time 10 \
    --dump-header "$scratch/head" --output "$scratch/body" --write-out '%{http_code}' "$url"
}

# Every price of an answer, a line each: what it is the price of, a tab, the price. Without a tool for JSON: one field a
# line, in the order that the service documents.
prices() {
  grep -oE '"[a-z_]+":("([^"\\]|\\.)*"|[^],"{}[]+)' "$scratch/body" | awk '
    { at = index($0, ":"); field = substr($0, 2, at - 3); value = substr($0, at + 1); gsub(/^"|"$/, "", value) }
    field == "event_id" || field == "bookmaker" || field == "market" || field == "name" || field == "price" {
      of[field] = value
    }
    field == "point" {
      print of["event_id"], of["bookmaker"], of["market"], of["name"] (value == "null" ? "" : " " value) "\t" of["price"]
    }' | sort
}

moves() {
  awk -F '\t' '
    FILENAME == ARGV[1] { before[$1] = $2; next }
    { if (!($1 in before)) print $1 ": - -> " $2; else if (before[$1] != $2) print $1 ": " before[$1] " -> " $2 }
    { delete before[$1] }
    END { for (of in before) print of ": " before[of] " -> -" }' "$1" "$2" | sort
}

# What the service says is wrong.
explain() {
  printf '%s ' "$1"
  sed -n 's/.*"code":"\([^"]*\)","message":"\([^"]*\)".*/\1: \2/p' "$scratch/body" 2>/dev/null
}

# Seconds to wait: $1 if the service said how long, else a back-off that doubles with each of $2 failures. Both with some
# chance in them: clients that were all told the same second must not come back in the same instant.
wait_for() {
  awk -v told="$1" -v failures="$2" -v most="$longest_back_off_s" -v seed="$(od -An -N3 -tu4 /dev/urandom)" 'BEGIN {
    srand(seed)
    back_off = failures < 6 ? 2 ^ failures : most
    print (told != "" ? told : back_off * (0.5 + rand() / 2)) + rand()
  }'
}

looks=0
failures=0
while :; do
  told= # how long to wait, as the service says it
  status=$(ask) || status=000
  case $status in
    200 | 304)
      failures=0
      told=$(header cache-control | sed -n 's/.*max-age=\([0-9]*\).*/\1/p')
      told=${told:-30} ;;
    000) ;;
    429 | 5??) told=$(header retry-after | grep '^[0-9]*$') || : ;;
    *)
      note "$(explain "$status")"
      [ "$status" != 401 ] || note "ODDSBOX_KEY must be a key of this service: oddsbox keys issue --sandbox --name me"
      exit 1 ;;
  esac
  case $status in
    200)
      prices >"$scratch/now"
      [ ! -e "$scratch/known" ] || moves "$scratch/known" "$scratch/now"
      mv "$scratch/now" "$scratch/known"
      header etag >"$scratch/etag"
      note "200: $(($(wc -l <"$scratch/known"))) prices" ;;
    304) note "304: nothing new" ;;
    *) failures=$((failures + 1)) ;;
  esac
  wait_s=$(wait_for "$told" "$failures")
  [ "$failures" -eq 0 ] || note "$(explain "$status"); again in ${wait_s%.*} s"
  looks=$((looks + 1))
  if [ "$looks" -eq "$count" ]; then
    [ "$failures" -eq 0 ] && exit 0 || exit 1
  fi
  sleep "$wait_s" &
  pause=$!
  wait "$pause"
done
