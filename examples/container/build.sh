#!/bin/sh
# Builds the image weirgate:VERSION of a program with buildah, and writes it as an OCI archive: build.sh PROGRAM VERSION FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1 version=$2 folder=$3
command -v buildah >/dev/null || { echo "missing: buildah (apt install buildah)" >&2; exit 1; }
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
"$here/root.sh" "$program" "$context/root"
mkdir "$context/state"
# A container inside of a container may have no overlays and no namespaces of its own: BUILDAH="--storage-driver vfs" and
# BUILDAH_ISOLATION=chroot help there.
buildah ${BUILDAH:-} build --format docker --timestamp "${SOURCE_DATE_EPOCH:-0}" --build-arg VERSION="$version" \
    --file "$here/Containerfile" --tag "weirgate:$version" "$context"
mkdir -p "$folder"
rm -f "$folder/weirgate-$version.image.tar"
buildah ${BUILDAH:-} push --format v2s2 "weirgate:$version" "docker-archive:$folder/weirgate-$version.image.tar:weirgate:$version"
echo "$folder/weirgate-$version.image.tar"
