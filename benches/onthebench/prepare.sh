#!/usr/bin/env bash
# Makes the folder of this gateway for onthebench.ai, `gateways/weirgate` in a checkout of github.com/GetBusbar/benchmarking:
# the binary of `make dist`, a store with one key, and the manifest that names it. The folder has to be where the rig runs,
# because the configuration names its files. The manifest has to say where the source is to be had: REPOSITORY.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 FOLDER REPOSITORY" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
binary=${WEIRGATE_BENCH_BINARY:-$here/../../target/dist/weirgate}
[ -x "$binary" ] || { echo "$binary is missing: run make dist" >&2; exit 1; }
mkdir -p "$1/state"
folder=$(cd "$1" && pwd)
install "$binary" "$folder/weirgate"
cp "$here/models.toml" "$here/weirgate.gen.toml.tmpl" "$folder"
echo secret > "$folder/provider-key"
# The rig fills the template in; the store needs no port.
sed -e "s|{GW_DIR}|$folder|g; s|{GW_PORT}|8080|; s|{MOCK_PORT}|9|; s|{{|{|g; s|}}|}|g" "$here/weirgate.gen.toml.tmpl" > "$folder/prepare.toml"
"$folder/weirgate" org create bench -c "$folder/prepare.toml" >/dev/null
"$folder/weirgate" credit add --org bench 1000000 -c "$folder/prepare.toml" >/dev/null
key=$("$folder/weirgate" key create --org bench -c "$folder/prepare.toml" | tail -1)
sed "s|{KEY}|$key|; s|{REPO}|$2|" "$here/definition.json" > "$folder/definition.json"
rm "$folder/prepare.toml"
echo "$folder is ready"
