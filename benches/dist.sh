#!/usr/bin/env bash
# Builds the binary that is installed, `weirgate` in the folder of the first argument, and `unstripped` beside it.
#
# A release build does not know which of its code runs, nor which of it together. So a copy that counts is called in all ways
# of the loopback bench, as often in every run. With these counts the compiler builds again (PGO): a call takes a fifth fewer
# instructions. Of that build another copy counts, and BOLT orders the code: what calls run stands together, what they never
# run stands apart. Without the tools of one of the two steps that step is left out, and the script says so.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1" "${CARGO_TARGET_DIR:-target}"
out=$(cd "$1" && pwd)
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
cargo=${CARGO:-cargo}
host=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc --print target-libdir)/../bin
# BOLT finds its runtime beside the file that a link in the path names.
bolt=$(readlink -f "$(command -v llvm-bolt-19 llvm-bolt | head -1)" || true)
rm -rf "$out"/*

# Builds the release binary in the folder of the first argument, with the flags of the second beside the user's own. Counts are found by the names of
# functions, in which the profile and the target have a part: so both builds have the same, and differ in flags alone. What
# runs while they are built, as build scripts do, is not built with the flags, because a target is named.
build() {
    RUSTFLAGS="${RUSTFLAGS:-} $2" CARGO_TARGET_DIR=$1 $cargo rustc --release --locked --bin weirgate --target "$host" -- \
        -Cstrip=none -Clink-arg=-Wl,--emit-relocs
}

# Calls a binary in all ways of the loopback bench.
train() {
    WEIRGATE_BENCH_BINARY=$1 $cargo bench --profile quick --locked --bench loopback -- --train
}

flags=
if [ -x "$tools/llvm-profdata" ]; then
    # It is fast enough without optimization across crates, which takes most of the time of a build.
    build "$target/counting" "-Cprofile-generate=$out/counts -Clto=off -Clinker-plugin-lto=no"
    train "$target/counting/$host/release/weirgate"
    "$tools/llvm-profdata" merge -o "$out/profile" "$out"/counts/*.profraw
    flags=-Cprofile-use=$out/profile
else
    echo "calls take more instructions than they could: llvm-profdata is missing (rustup component add llvm-tools)"
fi
build "$target/counted" "$flags"
built=$target/counted/$host/release/weirgate

if [ -n "$bolt" ]; then
    "$bolt" "$built" -o "$out/counting" -instrument -instrumentation-file="$out/counts.bolt"
    train "$out/counting"
    "$bolt" "$built" -o "$out/unstripped" -data="$out/counts.bolt" -reorder-blocks=ext-tsp -reorder-functions=hfsort \
        -split-functions -split-all-cold -split-eh
else
    echo "calls are slower than they could be: llvm-bolt is missing (apt install bolt-19), so the code is not laid out"
    cp "$built" "$out/unstripped"
fi
# BOLT leaves sections that the strip of binutils breaks.
if [ -x "$tools/rust-objcopy" ]; then
    "$tools/rust-objcopy" --strip-all "$out/unstripped" "$out/weirgate"
else
    echo "symbols stay in the binary: rust-objcopy is missing (rustup component add llvm-tools)"
    cp "$out/unstripped" "$out/weirgate"
fi
rm -rf "$out"/counts "$out"/counts.bolt "$out"/counting "$out"/profile
"$out/weirgate" --version
