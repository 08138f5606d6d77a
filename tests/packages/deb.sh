#!/bin/bash
# Tries the Debian package in a fresh Debian, in which no systemd runs: deb.sh PROGRAM VERSION. It needs root.
#
# It is installed from an apt repository, a key is made and used, a higher version comes under load, what was edited is kept,
# and a purge leaves nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$1 version=$2
[ "$(id -u)" = 0 ] || { echo "run this as root: it makes a chroot" >&2; exit 1; }
next=$version+next
# The packages of a try live for a minute.
export DEB_COMPRESSION=-Zgzip\ -z1
# Loopback has addresses for everybody, so that no port is anybody else's.
address=127.77.$((RANDOM % 250)).$((RANDOM % 250 + 1))
work=$(mktemp -d)
root=$work/root
server=

step() { echo "--- $*"; }
fail() { echo "failed: $*" >&2; exit 1; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
apt() { inside apt-get -qq -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root "$@"; }
# The processes of the server, which end with the chroot.
servers() { pgrep -u "$(stat -c %u "$root/var/lib/weirgate")" -x weirgate || true; }
clean() {
    touch "$work/end"
    for _ in $(seq 100); do
        [ -d "$root/var/lib/weirgate" ] && [ -n "$(servers)" ] || break
        kill -KILL $(servers) 2>/dev/null || true
        sleep 0.1
    done
    for folder in proc dev; do
        ! mountpoint -q "$root/$folder" || umount --lazy "$root/$folder"
    done
    rm -rf --one-file-system "$work"
}
trap clean EXIT

publish() {
    mkdir -p "$root/repository"
    mv "$1" "$root/repository/"
    (cd "$root/repository" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)
}

step "packages $version and $next"
systemd/deb/build.sh "$program" "$version" "$work/packages" >/dev/null
systemd/deb/build.sh "$program" "$next" "$work/packages" >/dev/null
# The higher version has another configuration, so that dpkg has to decide.
mkdir "$work/changed"
dpkg-deb --raw-extract "$work/packages/weirgate_$next-1_amd64.deb" "$work/changed"
echo '# A line of the next version.' >>"$work/changed/etc/weirgate/weirgate.toml"
dpkg-deb --root-owner-group $DEB_COMPRESSION --build "$work/changed" "$work/packages/weirgate_$next-1_amd64.deb" >/dev/null

step "a fresh bookworm"
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "deb [trusted=yes] file:/repository ./" >"$root/etc/apt/sources.list.d/weirgate.list"
publish "$work/packages/weirgate_$version-1_amd64.deb"

step "install"
apt update
apt install -y --no-install-recommends weirgate >"$work/install" 2>&1 || { cat "$work/install"; fail "the installation"; }
inside getent passwd weirgate >/dev/null || fail "no user weirgate"
[ "$(inside stat -c '%U %a' /var/lib/weirgate)" = "weirgate 700" ] || fail "the folder of the state"
for file in usr/lib/systemd/system/weirgate.service usr/share/man/man1/weirgate.1.gz usr/share/bash-completion/completions/weirgate \
    usr/share/zsh/vendor-completions/_weirgate usr/share/fish/vendor_completions.d/weirgate.fish; do
    [ -s "$root/$file" ] || fail "no $file"
done
inside systemd-analyze verify --man=no /usr/lib/systemd/system/weirgate.service >"$work/verify" 2>&1 &&
    [ ! -s "$work/verify" ] || { cat "$work/verify"; fail "the unit"; }
inside weirgate check -c /etc/weirgate/weirgate.toml >/dev/null || fail "the installed configuration is refused"

step "an edited configuration"
sed -i -e "s|^address = \"127.0.0.1:|address = \"$address:|" "$root/etc/weirgate/weirgate.toml"
# The load is far above the limit of an organization.
sed -i 's|^#requests_per_minute = .*|requests_per_minute = { chat = 0 }|' "$root/etc/weirgate/weirgate.toml"
printf '\n[providers.sandbox]\nkind = "sandbox"\n' >>"$root/etc/weirgate/weirgate.toml"
edited=$(sha256sum <"$root/etc/weirgate/weirgate.toml")

step "an organization and a key, by root, before the first start"
inside weirgate org create acme >/dev/null
inside weirgate credit add --org acme 100 >/dev/null
key=$(inside weirgate key create --org acme | tail -1)
foreign=$(inside find /var/lib/weirgate ! -user weirgate)
[ -z "$foreign" ] || fail "files of root, which the service cannot read: $foreign"

step "the command of the unit, by its user"
command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/weirgate.service")
user=$(sed -n 's/^User=//p' "$root/usr/lib/systemd/system/weirgate.service")
inside runuser -u "$user" -- sh -c "cd /var/lib/weirgate && umask 0077 && exec $command" >"$work/log" 2>&1 &
for _ in $(seq 300); do
    inside weirgate status --quiet 2>/dev/null && break
    sleep 0.1
done
inside weirgate status --quiet || { cat "$work/log"; fail "it does not serve"; }
server=$(servers)
ask() {
    curl -sS -m 20 "http://$address:8080/v1/chat/completions" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
        -d '{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}'
}
ask | grep -q '"finish_reason"' || fail "no answer: $(ask)"

step "upgrade under load"
publish "$work/packages/weirgate_$next-1_amd64.deb"
apt update
python3 tests/packages/load.py "http://$address:8080" "$key" "$work/end" >"$work/load" 2>&1 &
load=$!
sleep 2
apt -o Dpkg::Options::=--force-confold upgrade -y >"$work/upgrade" 2>&1 || { cat "$work/upgrade"; fail "the upgrade"; }
sleep 2
touch "$work/end"
wait "$load" || { cat "$work/load" "$work/upgrade"; grep -v '^{' "$work/log"; fail "calls have failed"; }
cat "$work/load"
[ "$(inside dpkg-query -W -f '${Version}' weirgate)" = "$next-1" ] || fail "the version"
grep -q "^process .* serves; process $server ends" "$work/upgrade" || { cat "$work/upgrade"; fail "no hand-over"; }
for _ in $(seq 300); do
    [ -d "/proc/$server" ] || break
    sleep 0.1
done
[ ! -d "/proc/$server" ] || fail "the old process has not ended"
ask | grep -q '"finish_reason"' || fail "no answer of the new process"
[ "$edited" = "$(sha256sum <"$root/etc/weirgate/weirgate.toml")" ] || fail "the edited configuration was replaced"
[ -e "$root/etc/weirgate/weirgate.toml.dpkg-dist" ] || fail "the configuration of the new version is not beside it"

step "a bad configuration fails neither the package nor the server"
cp "$root/etc/weirgate/weirgate.toml" "$work/good"
echo 'unknown = 1' >"$root/etc/weirgate/weirgate.toml"
again=$next+again
systemd/deb/build.sh "$program" "$again" "$work/packages" >/dev/null
publish "$work/packages/weirgate_$again-1_amd64.deb"
apt update
apt -o Dpkg::Options::=--force-confold upgrade -y >"$work/upgrade" 2>&1 || { cat "$work/upgrade"; fail "the upgrade"; }
[ "$(inside dpkg-query -W -f '${Version}' weirgate)" = "$again-1" ] || fail "the version"
ask | grep -q '"finish_reason"' || fail "the server has gone"
cp "$work/good" "$root/etc/weirgate/weirgate.toml"

step "remove keeps the state, purge does not"
kill $(servers)
for _ in $(seq 100); do
    [ -n "$(servers)" ] || break
    sleep 0.1
done
apt remove -y weirgate >/dev/null
[ -s "$root/var/lib/weirgate/weirgate.db" ] && [ -s "$root/etc/weirgate/weirgate.toml" ] || fail "a removal has taken the state"
apt purge -y weirgate >/dev/null
inside getent passwd weirgate >/dev/null && fail "the user is left"
rm -rf "$root/repository" "$root/etc/apt/sources.list.d/weirgate.list"
left=$(inside find / -xdev -name '*weirgate*' -not -path '/proc/*' -not -path '/var/log/*' -not -path '/var/lib/apt/*' -not -path '/var/cache/apt/*')
[ -z "$left" ] || fail "a purge leaves $left"
echo "the package is good"
