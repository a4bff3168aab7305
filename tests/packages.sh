#!/usr/bin/env bash
# Installs, upgrades, removes and purges the Debian package in a clean root, with and without systemd, runs the service there
# as its user, and runs what is in the image. systemctl is replaced by a script that records its arguments.
#   .ci/package OUT && tests/packages.sh OUT
# Needs to be root, dpkg, curl and mmdebstrap (apt install mmdebstrap), which fetches the packages of Debian; skopeo for the image,
# and lintian if that is to be run. PACKAGES_ROOT is a file to keep the clean root in for the next time.
set -euo pipefail
out=$(cd "${1:?the directory that .ci/package wrote}" && pwd)
deb=$(ls "$out"/oddsbox_*.deb)
version=$(dpkg-deb -f "$deb" Version)
fail() { echo "FAILED: $*" >&2; exit 1; }
for tool in mmdebstrap dpkg-deb curl; do command -v "$tool" >/dev/null || fail "$tool is not installed"; done
[ "$(id -u)" = 0 ] || fail "a chroot needs root"

scratch=$(mktemp -d)
root=$scratch/root
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
as_oddsbox=(setpriv --reuid oddsbox --regid oddsbox --clear-groups)
as_service() { inside "${as_oddsbox[@]}" "$@"; }
mode() { inside stat -c '%U:%G %a' "$1"; }
expect() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }
# Starts a service and waits until it listens. The command must not be a function: its process is the one to stop.
serve() {
  "$@" >"$scratch/server.out" 2>"$scratch/server.err" &
  server=$!
  for _ in $(seq 240); do
    if grep -q '^listening on' "$scratch/server.out"; then break; fi
    kill -0 "$server" 2>/dev/null || { cat "$scratch/server.err" >&2; fail "the service did not start"; }
    sleep 0.25
  done
  address=$(sed -n 's/^listening on //p' "$scratch/server.out")
}
stop() { kill "$server" && wait "$server" && server=; }
step() { printf '== %s\n' "$*"; }

step "sums"
(cd "$out" && sha256sum --quiet -c SHA256SUMS)

step "a clean root"
clean=${PACKAGES_ROOT:-$scratch/clean.tar}
[ -s "$clean" ] || mmdebstrap --quiet --variant=apt --include=adduser,init-system-helpers bookworm "$clean"
mkdir "$root"
tar -C "$root" -xf "$clean" --exclude='./dev/*'
mknod -m 0666 "$root/dev/null" c 1 3
mknod -m 0666 "$root/dev/urandom" c 1 9
listing() { (cd "$root" && find . \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./run -o -path ./tmp \) -prune -o -print | sort); }
listing >"$scratch/before"

# The same files as an older version, with other default settings.
dpkg-deb -R "$deb" "$scratch/older"
sed -i 's/^Version:.*/Version: 0.0.1-1/' "$scratch/older/DEBIAN/control"
echo '# a line of the older version' >>"$scratch/older/etc/oddsbox/oddsbox.toml"
(cd "$scratch/older" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group -b "$scratch/older" "$root/tmp/older.deb" >/dev/null
cp "$deb" "$root/tmp/newer.deb"
install_deb() { inside dpkg --force-confold -i "/tmp/$1.deb" >"$scratch/dpkg.log" 2>&1 || { cat "$scratch/dpkg.log" >&2; fail "dpkg -i $1"; }; }

step "installation without systemd"
install_deb newer
expect "the binary" "$(mode /usr/bin/oddsbox)" "root:root 755"
expect "the settings" "$(mode /etc/oddsbox/oddsbox.toml)" "root:oddsbox 640"
expect "the data directory" "$(mode /var/lib/oddsbox)" "oddsbox:oddsbox 700"
expect "the shell of the user" "$(inside getent passwd oddsbox | cut -d: -f6-)" "/var/lib/oddsbox:/usr/sbin/nologin"
expect "the version" "$(inside oddsbox --version)" "oddsbox ${version%-*}"
inside oddsbox man /tmp/man >/dev/null
for page in "$root"/tmp/man/*.1; do
  zcat "$root/usr/share/man/man1/$(basename "$page").gz" | cmp - "$page" || fail "$page is not that of the binary"
done
inside oddsbox completions bash | cmp - "$root/usr/share/bash-completion/completions/oddsbox"
[ -f "$root/usr/share/zsh/vendor-completions/_oddsbox" ] && [ -f "$root/usr/share/fish/vendor_completions.d/oddsbox.fish" ]
grep -q '^ExecStart=/usr/bin/oddsbox serve --config /etc/oddsbox/oddsbox.toml' "$root/lib/systemd/system/oddsbox.service" ||
  grep -q '^ExecStart=/usr/bin/oddsbox serve' "$root/usr/lib/systemd/system/oddsbox.service"
for file in third-party.txt.gz changelog.gz changelog.Debian.gz README.Debian copyright; do
  [ -s "$root/usr/share/doc/oddsbox/$file" ] || fail "$file is missing"
done

step "the service as its user"
data=(--data /var/lib/oddsbox)
as_service oddsbox config show --config /etc/oddsbox/oddsbox.toml >/dev/null
key=$(as_service oddsbox "${data[@]}" keys issue --sandbox --name package --json | sed 's/.*"key":"\([^"]*\)".*/\1/')
serve chroot "$root" "${as_oddsbox[@]}" /usr/bin/oddsbox "${data[@]}" serve --config /etc/oddsbox/oddsbox.toml --listen 127.0.0.1:0
as_service oddsbox "${data[@]}" ready >/dev/null
curl -fsS -H "X-API-Key: $key" "$address/v1/sports" | grep -q '"key":"tennis"' || fail "the service does not answer"
stop
expect "the data file" "$(mode /var/lib/oddsbox/oddsbox.redb)" "oddsbox:oddsbox 600"

step "purging keeps the data, and nothing else"
inside dpkg --purge oddsbox >"$scratch/dpkg.log" 2>&1
grep -q 'the data in /var/lib/oddsbox is kept' "$scratch/dpkg.log" || fail "purging does not say that the data is kept"
listing >"$scratch/after"
kept=$(diff "$scratch/before" "$scratch/after" | sed -n 's/^[<>] //p' |
  grep -v -e '^./var/lib/oddsbox' -e '^./etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)-$' -e '^./var/cache/' || true)
expect "what purging leaves behind" "$kept" ""

# From here on there is a systemd, as far as the package can tell.
mkdir -p "$root/run/systemd/system"
cat >"$root/usr/bin/systemctl" <<'SH'
#!/bin/sh
echo "$*" >>/run/systemctl.log
case "$*" in
  *is-active*) [ -e /run/active ] ;;
  *is-enabled*) echo enabled ;;
  *stop*) rm -f /run/active ;;
  *start*) : >/run/active ;;
esac
SH
chmod 0755 "$root/usr/bin/systemctl"
called() { grep -qx -- "$1" "$root/run/systemctl.log"; }
clear_calls() { : >"$root/run/systemctl.log"; }

step "first installation with systemd: enabled and started"
clear_calls
install_deb older
called '\(.* \)\?start oddsbox.service' || fail "it was not started: $(cat "$root/run/systemctl.log")"
called '.*preset oddsbox.service' || fail "it was not enabled: $(cat "$root/run/systemctl.log")"
as_service oddsbox "${data[@]}" keys list --json | grep -q package || fail "the data of before is not there"

step "upgrade: restarted if it runs, settings that were not changed are replaced"
clear_calls
install_deb newer
called '.*try-restart oddsbox.service' || fail "it was not restarted: $(cat "$root/run/systemctl.log")"
if called '\(.* \)\?\(stop\|start\|restart\) oddsbox.service'; then fail "an upgrade stops or starts it: $(cat "$root/run/systemctl.log")"; fi
expect "the installed version" "$(inside dpkg-query -W -f '${Version}' oddsbox)" "$version"
if grep -q 'older version' "$root/etc/oddsbox/oddsbox.toml"; then fail "the settings are those of the older version"; fi
expect "the settings" "$(mode /etc/oddsbox/oddsbox.toml)" "root:oddsbox 640"
as_service oddsbox "${data[@]}" keys list --json | grep -q package || fail "the upgrade lost the data"

step "settings that were changed are kept"
echo 'refresh = "10s"' >>"$root/etc/oddsbox/oddsbox.toml"
install_deb older
install_deb newer
grep -q '^refresh = "10s"' "$root/etc/oddsbox/oddsbox.toml" || fail "an upgrade replaced the operator's settings"

step "removal: stopped, settings and data kept; installed again: started"
clear_calls
inside dpkg -r oddsbox >"$scratch/dpkg.log" 2>&1
called '\(.* \)\?stop oddsbox.service' || fail "it was not stopped: $(cat "$root/run/systemctl.log")"
[ ! -e "$root/usr/bin/oddsbox" ] || fail "the binary is still there"
grep -q '^refresh = "10s"' "$root/etc/oddsbox/oddsbox.toml" && [ -s "$root/var/lib/oddsbox/oddsbox.redb" ] || fail "something is gone"
clear_calls
install_deb newer
called '\(.* \)\?start oddsbox.service' || fail "it was not started: $(cat "$root/run/systemctl.log")"

step "purge: settings removed"
inside dpkg --purge oddsbox >"$scratch/dpkg.log" 2>&1
[ ! -e "$root/etc/oddsbox" ] || fail "/etc/oddsbox is still there"
[ -s "$root/var/lib/oddsbox/oddsbox.redb" ] || fail "the database is gone"

if command -v lintian >/dev/null; then
  step "lintian"
  # The binary is static on purpose. cargo-deb takes the synopsis from Cargo.toml. It is no upload to Debian, where a bug is closed.
  lintian --allow-root --fail-on error,warning --suppress-tags \
    statically-linked-binary,shared-library-lacks-prerequisites,description-synopsis-starts-with-article,initial-upload-closes-no-bugs "$deb"
fi

if command -v skopeo >/dev/null; then
  step "the image"
  image=$(ls "$out"/*-image.tar)
  skopeo inspect --config "docker-archive:$image" >"$scratch/image.json"
  grep -q '"User": "10001:10001"' "$scratch/image.json" || fail "the image runs as root"
  mkdir "$scratch/image"
  for layer in $(tar -xOf "$image" manifest.json | grep -o '[0-9a-f]*\.tar'); do
    tar -xOf "$image" "$layer" | tar -C "$scratch/image" -x
  done
  expect "what is in it" "$(cd "$scratch/image" && find . -type f)" ./usr/bin/oddsbox
  expect "its data directory" "$(stat -c '%u:%g %a' "$scratch/image/data")" "10001:10001 700"
  variables=$(sed -n 's/^ *"\(ODDSBOX_DATA=[^"]*\)".*/\1/p' "$scratch/image.json")
  in_image=(env -i PATH="$PATH" "$variables" ODDSBOX_LISTEN=127.0.0.1:0 chroot --userspec=10001:10001 "$scratch/image" /usr/bin/oddsbox)
  expect "its version" "$("${in_image[@]}" --version)" "oddsbox ${version%-*}"
  serve "${in_image[@]}" serve
  "${in_image[@]}" ready >/dev/null
  curl -fsS "$address/healthz" >/dev/null
  stop
fi
echo "the packages are good"
