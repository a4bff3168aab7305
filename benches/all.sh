#!/usr/bin/env bash
# Everything that this directory measures, one after the other, each into a file of its own:
#
#     benches/all.sh DIRECTORY [NAME...]
#
# Takes about an hour and a quarter on two cores that do nothing else. `log` in the directory has when each began and ended, and for how long
# the hypervisor gave the cores to other guests meanwhile. `large`, a history of 10^8 changes, takes another hour and 30 GB of disk,
# and is measured only if it is named.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:?a directory for the results}
shift
mkdir -p "$out"
# The programs of `cargo bench` are then those of the release build, and nothing is built twice.
export CARGO_PROFILE_BENCH_STRIP=symbols CARGO_PROFILE_BENCH_DEBUG=false
wanted=" ${*:-run changing polls ingest fanout growth nodes history lookup requests prices keys write derived log instructions} "

stolen_ms() { awk -v ticks="$(getconf CLK_TCK)" '/^cpu /{print int($9 * 1000 / ticks)}' /proc/stat; }

failed=0
measure() {
  local name=$1
  shift
  [[ $wanted == *" $name "* ]] || return 0
  local stolen began=$SECONDS code=0
  stolen=$(stolen_ms)
  "$@" >"$out/$name.txt" 2>"$out/$name.err" || code=$?
  echo "$name: exit code $code, $((SECONDS - began)) s, $(($(stolen_ms) - stolen)) ms stolen" | tee -a "$out/log"
  [ "$code" = 0 ] || failed=1
}

cargo build --release --locked --bin oddsbox --benches || exit 1
measure run python3 benches/versus/run.py --rounds 10 --seconds 2
measure changing python3 benches/versus/changing.py --rounds 3 --seconds 3
measure polls python3 benches/versus/polls.py
measure ingest python3 benches/versus/ingest.py
measure fanout python3 benches/versus/fanout.py
measure growth python3 benches/versus/growth.py --seconds 2
measure nodes cargo bench --locked --bench cluster -- 150
measure history python3 benches/versus/history.py --growth
measure lookup cargo bench --locked --bench lookup
measure requests cargo bench --locked --bench handle
measure prices cargo bench --locked --bench price
measure keys cargo bench --locked --bench authenticate
measure write cargo bench --locked --bench ingest
measure derived cargo bench --locked --bench derived
measure log cargo bench --locked --bench history -- 7
measure instructions tests/instructions.sh
measure large python3 benches/versus/history.py --rounds 3334
exit "$failed"
