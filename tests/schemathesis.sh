#!/usr/bin/env bash
# Holds the running service against its own OpenAPI document with schemathesis (a package of PyPI):
#   tests/schemathesis.sh [EXAMPLES [BINARY]]        examples per operation and phase, 600 by default; the debug build by default
# Needs `st` on the PATH, or in the environment variable ST. Every check of schemathesis runs but one, on some operations:
# that whatever the schema allows is accepted is not checked for odds, changes, derived prices, lines and closing, as no
# schema can tie one parameter to another, for the archive, whose hours must be in history, and for messages of the Model
# Context Protocol, which have a schema for each method. Some values are not generated but fixed: a cursor (`after`) and a
# position (`since`) are opaque, so no schema can describe which texts are one, a `competition` must be known to the
# catalogue or to the world, and `as_of` and `hour` must be after the beginning of history, which is the start of the
# server. The stream is left out: its answers do not end. Under /v4 what is unknown or empty is passed over, as clients of
# that interface expect, and one of two parameters is required: there neither what is accepted nor what is refused is held
# against the schemas, only what is answered.
set -euo pipefail
cd "$(dirname "$0")/.."
examples=${1:-600}
st=${ST:-st}
command -v "$st" >/dev/null || { echo "schemathesis is not installed: pip install schemathesis"; exit 2; }

oddsbox=${2:-}
if [ -z "$oddsbox" ]; then
  cargo build --locked --quiet
  oddsbox=${CARGO_TARGET_DIR:-target}/debug/oddsbox
fi
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT

issued=$("$oddsbox" --data "$scratch/data" keys issue --sandbox --name schemathesis --burst 16000000 --per-day 1000000000 --json)
KEY=$(printf '%s' "$issued" | sed 's/.*"key":"\([^"]*\)".*/\1/')
export KEY
ODDSBOX_LOG=warn "$oddsbox" --data "$scratch/data" serve --listen 127.0.0.1:0 >"$scratch/out" 2>"$scratch/err" &
server=$!
for _ in $(seq 120); do
  grep -q '^listening on' "$scratch/out" && break
  kill -0 "$server" 2>/dev/null || { cat "$scratch/err"; exit 1; }
  sleep 0.25
done
address=$(sed -n 's/^listening on //p' "$scratch/out")

# The first publication is at most a second ahead of the clock.
sleep 2
AS_OF=$(date -u +%Y-%m-%dT%H:%M:%SZ)
HOUR=${AS_OF%%:*}
SINCE=$(curl -sS -D - -o "$scratch/odds" -H "X-API-Key: $KEY" "$address/v1/sports/mma/odds" | tr -d '\r' | sed -n 's/^x-position: //p')
export AS_OF HOUR SINCE
cat >"$scratch/schemathesis.toml" <<'TOML'
[auth.openapi.ApiKeyHeader]
api_key = "${KEY}"
[auth.openapi.ApiKeyQuery]
api_key = "${KEY}"
[parameters]
"query.after" = "302061"
"query.competition" = "mma_mixed_martial_arts"
"query.as_of" = "${AS_OF}"
"query.since" = "${SINCE}"
"path.hour" = "${HOUR}"
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "414", "429", "431"]
# Sequences of requests replace an invalid value by one of the fixed ones above, and expect a refusal all the same.
[phases.stateful.checks.negative_data_rejection]
enabled = false
[[operations]]
include-path-regex = "^/mcp$|^/v1/changes$|^/v1/sports/[^/]*/(odds|best|fair|edges|closing|archive/[^/]*|events/[^/]*/lines)$"
checks.positive_data_acceptance.enabled = false
[[operations]]
include-path-regex = "^/v1/stream$"
enabled = false
[[operations]]
include-path-regex = "^/v4/"
checks.positive_data_acceptance.enabled = false
checks.negative_data_rejection.enabled = false
TOML
(cd "$scratch" && "$st" --config-file schemathesis.toml run "$address/openapi.json" --seed 1 --max-examples "$examples")
kill -0 "$server" || { echo "the server died"; cat "$scratch/err"; exit 1; }
if grep -q panicked "$scratch/err"; then cat "$scratch/err"; exit 1; fi
