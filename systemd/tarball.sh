#!/bin/sh
# Builds the tarball of a program: tarball.sh PROGRAM VERSION FOLDER. It holds what `make install` lays out.
set -eu
cd "$(dirname "$0")/.."
program=$1 version=$2 folder=$3
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
name=weirgate-$version-$(uname -m)-linux
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
umask 022
make --no-print-directory --silent install DESTDIR="$tree/$name" PREFIX=/usr SYSCONFDIR=/etc BINARY="$program"
cp LICENSE "$tree/$name/"
cp "$folder/weirgate-$version.sbom.cdx.json" "$tree/$name/sbom.cdx.json"
mkdir -p "$folder"
# The same bytes of the same commit: names in order, one time, no owner, no time of the compression.
tar --create --directory="$tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu "$name" |
    gzip -9n >"$folder/$name.tar.gz"
(cd "$folder" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$folder/$name.tar.gz"
