#!/usr/bin/env bash
# Builds the binary that is installed, `weirgate` in the folder of the first argument, and `unstripped` beside it.
#
# A release build does not know which of its code runs together. So a copy that counts is called in all ways of the
# loopback bench, as often in every run, and BOLT orders the code by these counts: what calls run stands together, what
# they never run stands apart, and a call misses half as much code in the second level of the cache. Without BOLT it is the
# release binary.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
cargo=${CARGO:-cargo}
built=${CARGO_TARGET_DIR:-target}/release/weirgate
# BOLT finds its runtime beside the file that a link in the path names.
bolt=$(readlink -f "$(command -v llvm-bolt-19 llvm-bolt | head -1)" || true)
# It leaves sections that the strip of binutils breaks.
strip=$(rustc --print target-libdir)/../bin/rust-objcopy

$cargo rustc --release --locked --bin weirgate -- -Cstrip=none -Clink-arg=-Wl,--emit-relocs
rm -f "$out"/*
if [ -n "$bolt" ]; then
    "$bolt" "$built" -o "$out/counting" -instrument -instrumentation-file="$out/counts"
    WEIRGATE_BENCH_BINARY="$out/counting" $cargo bench --profile quick --locked --bench loopback -- --train
    "$bolt" "$built" -o "$out/unstripped" -data="$out/counts" -reorder-blocks=ext-tsp -reorder-functions=hfsort \
        -split-functions -split-all-cold -split-eh
    rm "$out/counting" "$out/counts"
else
    echo "calls are slower than they could be: llvm-bolt is missing (apt install bolt-19), so the code is not laid out"
    cp "$built" "$out/unstripped"
fi
if [ -x "$strip" ]; then
    "$strip" --strip-all "$out/unstripped" "$out/weirgate"
else
    echo "symbols stay in the binary: rust-objcopy is missing (rustup component add llvm-tools)"
    cp "$out/unstripped" "$out/weirgate"
fi
"$out/weirgate" --version
