#!/bin/sh
# Lays out the root file system of the image: root.sh PROGRAM FOLDER. Configuration and catalogue are those of `make install`.
set -eu
cd "$(dirname "$0")/../.."
program=$1 root=$2
umask 022
make --no-print-directory --silent install-conf DESTDIR="$root" SYSCONFDIR=/etc
# From outside of the container its loopback is not reached. The operator's listener stays there.
config=$root/etc/weirgate/weirgate.toml
sed '/^\[listen\]/,/^\[/s|^address = "127.0.0.1:8080"|address = "0.0.0.0:8080"|' "$config" >"$config.new"
cmp -s "$config" "$config.new" && { echo "listen.address is not where it was in conf/weirgate.toml" >&2; exit 1; }
mv "$config.new" "$config"
install -D -m 0755 "$program" "$root/usr/bin/weirgate"
# The libraries by the paths under which the loader looks for them, the loader among them.
ldd "$program" | grep -oE '/[^ ]+' | sort -u | while read -r library; do
    install -D -m 0755 "$(readlink -f "$library")" "$root$library"
done
# Providers are asked over TLS, and their certificates are checked by these.
install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
# Names of /etc/hosts count, then those of DNS.
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
printf 'weirgate:x:65532:65532::/var/lib/weirgate:\n' >"$root/etc/passwd"
printf 'weirgate:x:65532:\n' >"$root/etc/group"
install -d -m 1777 "$root/tmp"
find "$root" -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH:-0}" {} +
