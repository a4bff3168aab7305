#!/usr/bin/env bash
# Clones the repository into an empty directory and does what the README says, command by command, as a newcomer would:
#   tests/readme.sh [COMMAND...]        commands to leave out, exactly as in the README
# tests/readme.py says how the README is read. A build directory in CARGO_TARGET_DIR is used; variables such as
# CARGO_PROFILE_RELEASE_LTO=off make the release build cheaper. What is not committed is not tried. Needs Python 3.9, git
# and curl.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in python3 git curl; do
  command -v "$tool" >/dev/null || { echo "$tool is not installed, and the README cannot be followed without it"; exit 2; }
done

# A build directory that is kept holds the clone too: at the same place every time, it is built into the same files.
if [ -n "${CARGO_TARGET_DIR:-}" ]; then
  mkdir -p "$CARGO_TARGET_DIR"
  CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
  place=$CARGO_TARGET_DIR/readme
  rm -rf "$place"
  mkdir "$place"
else
  place=$(mktemp -d)
  CARGO_TARGET_DIR=$place/oddsbox/target
fi
export CARGO_TARGET_DIR
trap 'rm -rf "$place"' EXIT
git clone --quiet --no-hardlinks . "$place/oddsbox"
# A server that is already on the machine keeps its port, and a newcomer has set nothing.
for name in $(compgen -e ODDSBOX_); do unset "$name"; done
export ODDSBOX_LISTEN=127.0.0.1:0
PATH=$CARGO_TARGET_DIR/release:$PATH
cd "$place/oddsbox"
python3 tests/readme.py README.md "$@"
