#!/usr/bin/env bash
# The long forms of all tests, one group after the other, each into a file of its own:
#
#     tests/long.sh DIRECTORY [NAME...]
#
# Takes some hours on two cores. `log` in the directory has how each group ended. Needs redis-server, and a disk for it that is not slow: with
# `appendfsync always` it waits for the disk all the time (TMPDIR=/dev/shm will do).
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:?a directory for the results}
shift
mkdir -p "$out"
# Optimised a little, so that the long forms take less time, and with assertions.
export CARGO_PROFILE_DEV_OPT_LEVEL=1
export ODDSBOX_LONG_TESTS=1 ODDSBOX_SOAK_SECONDS=3600 ODDSBOX_REQUIRE_REDIS=1
wanted=" ${*:-crash others units soak} "

failed=0
run() {
  local name=$1 target=$2
  shift 2
  [[ $wanted == *" $name "* ]] || return 0
  local began=$SECONDS code=0
  # shellcheck disable=SC2086 # two words
  cargo test --locked $target -- "$@" --nocapture >"$out/$name.txt" 2>&1 || code=$?
  echo "$name: exit code $code, $((SECONDS - began)) s" | tee -a "$out/log"
  [ "$code" = 0 ] || failed=1
}

run crash "--test integration" crash:: --skip soak::
run others "--test integration" --skip crash:: --skip soak::
run units --lib
# An hour for each, at the same time.
run soak "--test integration" soak:: --test-threads 3
exit "$failed"
