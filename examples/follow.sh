#!/bin/sh
# Keeps a board of prices up to date by the stream, through lost connections: a file for each record.
#
#     ODDSBOX_KEY=sk_test_ob_... sh follow.sh 'sports=mma&odds_format=decimal' board
#
# Needs curl and jq. Prints a line for every change; ODDSBOX_URL names another service.
set -eu
url=${ODDSBOX_URL:-http://127.0.0.1:8080}
query=${1:-}
board=${2:-board}
last= wait=1
mkdir -p "$board"
trap 'exit 0' TERM INT

# Applies the event in $kind, $id and $data.
apply() {
  case $kind in
    # Without a position to continue from, a snapshot follows.
    hello) if [ -z "$last" ]; then rm -f "$board"/*.json; fi ;;
    reset) rm -f "$board"/*.json ;;
    event)
      if [ "$(printf %s "$data" | jq -r .status)" = removed ]; then
        event=$(printf %s "$data" | jq -r '.sport_key + " " + .id')
        for record in "$board"/*.json; do
          if [ "$(jq -r '.sport_key + " " + .event_id' "$record")" = "$event" ]; then rm "$record"; fi
        done
      fi ;;
  esac
  printf %s "$data" | jq -c '.records[]?' | while IFS= read -r record; do
    printf '%s\n' "$record" >"$board/$(printf %s "$record" | jq -r .id).json"
  done
  printf %s "$data" | jq -r '.closed[]?' | while IFS= read -r closed; do rm -f "$board/$closed.json"; done
  case $kind in
    ready | odds | reset | bye)
      changed=$(printf %s "$data" | jq '(.records // [] | length) + (.closed // [] | length)')
      printf '%s: %s changed, %s on the board\n' "$kind" "$changed" "$(find "$board" -name '*.json' | wc -l | tr -d ' ')" ;;
  esac
  if [ "$kind" = bye ]; then wait=$(printf %s "$data" | jq '.retry_after_s // 1'); else wait=1; fi
}

pipe=$(mktemp -u)
mkfifo "$pipe"
trap 'rm -f "$pipe"' EXIT
while :; do
  # A stream that is silent for 40 s is lost: the service says something every 15 s.
  curl -sSN --fail-with-body --speed-limit 1 --speed-time 40 -H "X-API-Key: $ODDSBOX_KEY" \
    ${last:+-H "Last-Event-ID: $last"} "$url/v1/stream?$query" >"$pipe" &
  kind= id= data=
  while IFS= read -r line; do
    case $line in
      event:*) kind=${line#event: } ;;
      id:*) id=${line#id: } ;;
      data:*) data=${line#data: } ;;
      '{"error":'*) printf '%s\n' "$line" | jq -r .error.message >&2 ;;
      '')
        if [ -n "$kind" ]; then apply; fi
        last=${id:-$last} kind= id= data= ;;
    esac
  done <"$pipe"
  if wait $!; then :; elif [ $? = 22 ]; then exit 1; fi
  sleep "$wait"
  wait=$((wait < 30 ? wait * 2 : 60))
done
