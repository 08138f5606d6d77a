#!/bin/sh
# Builds the Debian package of a program: build.sh PROGRAM VERSION FOLDER. It holds what `make install` lays out.
#
# dpkg-deb and not cargo-deb: a table of files in Cargo.toml would be a second list beside that of `make install`.
set -eu
cd "$(dirname "$0")/../.."
program=$1 version=$2 folder=$3
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
architecture=$(dpkg --print-architecture)
maintainer=${DEB_MAINTAINER:-Weirgate maintainers <maintainers@weirgate.invalid>}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 0755 "$tree"
root=$tree/root
# Readable for everybody, whatever the umask is.
umask 022
make --no-print-directory --silent install DESTDIR="$root" PREFIX=/usr SYSCONFDIR=/etc ZSHDIR=/usr/share/zsh/vendor-completions \
    BINARY="$program"
# Debian's own changelog has the versions of the package.
documents=$root/usr/share/doc/weirgate
mkdir -p "$root/usr/share/lintian/overrides"
cp systemd/deb/lintian-overrides "$root/usr/share/lintian/overrides/weirgate"
printf 'weirgate (%s-1) unstable; urgency=medium\n\n  * Version %s: changelog.gz says what is new.\n\n -- %s  %s\n' \
    "$version" "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" |
    gzip -9n >"$documents/changelog.Debian.gz"

mkdir -p "$tree/debian" "$root/DEBIAN"
# It asks for a source package, of which it reads nothing else.
printf 'Source: weirgate\n\nPackage: weirgate\nArchitecture: any\n' >"$tree/debian/control"
depends=$(cd "$tree" && dpkg-shlibdeps -O root/usr/bin/weirgate 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "dpkg-shlibdeps finds no library of $program" >&2; exit 1; }
size=$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
sed -e "s|@VERSION@|$version-1|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@MAINTAINER@|$maintainer|" -e "s|@SIZE@|$size|" \
    -e "s|@DEPENDS@|$depends|" systemd/deb/control >"$root/DEBIAN/control"
install -m 0644 systemd/deb/conffiles "$root/DEBIAN/conffiles"
install -m 0755 systemd/deb/postinst systemd/deb/prerm systemd/deb/postrm "$root/DEBIAN/"
(cd "$root" && find etc usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$folder"
dpkg-deb --root-owner-group ${DEB_COMPRESSION:--Zxz} --build "$root" "$folder/weirgate_$version-1_$architecture.deb"
