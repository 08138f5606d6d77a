#!/bin/bash
# Runs the container image as a runtime would, without needing one: image.sh PROGRAM VERSION. It needs root and buildah.
#
# Its files are the root of a process of its user without capabilities. The root is read-only, only the state can be written.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$1 version=$2
[ "$(id -u)" = 0 ] || { echo "run this as root: it mounts the image" >&2; exit 1; }
address=127.77.$((RANDOM % 250)).$((RANDOM % 250 + 1))
work=$(mktemp -d)
export BUILDAH="--storage-driver vfs --root $work/storage --runroot $work/run" BUILDAH_ISOLATION=chroot
fail() { echo "failed: $*" >&2; exit 1; }
server=
clean() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
    buildah $BUILDAH unmount --all >/dev/null 2>&1 || true
    rm -rf --one-file-system "$work"
}
trap clean EXIT

echo "--- the image"
examples/container/build.sh "$program" "$version" "$work/packages" >/dev/null 2>&1
container=$(buildah $BUILDAH from "weirgate:$version")
root=$(buildah $BUILDAH mount "$container")
told() { buildah $BUILDAH inspect --type image --format "{{$1}}" "weirgate:$version"; }
user=$(told .Docker.Config.User)
[ "$user" = 65532:65532 ] || fail "the user $user"
[ "$(told .Docker.Config.StopSignal)" = SIGTERM ] || fail "the signal"
[ ! -e "$root/bin/sh" ] && [ ! -e "$root/usr/bin/sh" ] || fail "the image has a shell"
[ "$(stat -c %u:%g "$root/var/lib/weirgate")" = "$user" ] || fail "the owner of the state"
words() { buildah $BUILDAH inspect --type image --format "{{range $1}}{{.}} {{end}}" "weirgate:$version"; }
entry=$(words .Docker.Config.Entrypoint)
command=$(words .Docker.Config.Cmd)
health=$(words .Docker.Config.Healthcheck.Test)
[ -n "$entry" ] && [ -n "$command" ] && [ "${health#CMD }" != "$health" ] || fail "the commands: $entry, $command, $health"

echo "--- its process"
mkdir "$work/state" "$root/proc"
chown "$user" "$work/state"
sed -i -e "s|^address = \"[0-9.]*:|address = \"$address:|" "$root/etc/weirgate/weirgate.toml"
printf '\n[providers.sandbox]\nkind = "sandbox"\n' >>"$root/etc/weirgate/weirgate.toml"
cat >"$work/start" <<'START'
set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/var/lib/weirgate"
mount -t proc proc "$1/proc"
mount -o remount,bind,ro "$1"
shift 2
exec "$@"
START
# Takes the place of the shell that calls it. The image has no `env`, so the environment is made before.
run() {
    exec env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin unshare --mount --propagation private sh "$work/start" "$root" "$work/state" \
        setpriv --no-new-privs --inh-caps=-all chroot --userspec="$user" "$root" "$@"
}
run $entry $command >"$work/log" 2>&1 &
server=$!
healthy() { (run ${health#CMD }) 2>/dev/null; }
for _ in $(seq 300); do
    healthy && break
    sleep 0.1
done
healthy || { cat "$work/log"; fail "it does not become healthy"; }
key=$(sed -n '/^wg_/p' "$work/log")
[ -n "$key" ] || { cat "$work/log"; fail "no key of the first start"; }
grep -q '^CapEff:[[:space:]]*0*$' "/proc/$server/status" || fail "it has capabilities"
[ "$(stat -c %u "/proc/$server")" = 65532 ] || fail "it is not its user's"
answer=$(curl -sS -m 20 "http://$address:8080/v1/chat/completions" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
    -d '{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}')
grep -q '"finish_reason"' <<<"$answer" || fail "no answer: $answer"

echo "--- its end"
kill -TERM "$server"
wait "$server" || fail "it ends with $?"
server=
healthy && fail "it is healthy without a process"
echo "the image is good"
