//! MurmurHash3, x86, 32 bits: the hash that puts users into buckets. Source: docs/facts/decision-engine.md B.

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// Returns the hash of the concatenated `parts`, without a copy.
pub(super) fn hash(seed: u32, parts: [&[u8]; 2]) -> u32 {
    let mut state = seed;
    // A block may start in the first part and end in the second.
    let (blocks, rest) = parts[0].as_chunks::<4>();
    for block in blocks {
        state = mix(state, u32::from_le_bytes(*block));
    }
    let mut second = parts[1];
    let mut tail = [0; 4];
    let mut length = rest.len();
    copy(&mut tail, 0, rest);
    if length > 0 {
        let taken = second.len().min(4 - length);
        let (head, left) = second.split_at(taken);
        copy(&mut tail, length, head);
        length += taken;
        second = left;
        if length == 4 {
            state = mix(state, u32::from_le_bytes(tail));
            (tail, length) = ([0; 4], 0);
        }
    }
    let (blocks, rest) = second.as_chunks::<4>();
    for block in blocks {
        state = mix(state, u32::from_le_bytes(*block));
    }
    if !rest.is_empty() {
        copy(&mut tail, 0, rest);
        length = rest.len();
    }
    if length > 0 {
        state ^= scramble(u32::from_le_bytes(tail));
    }
    // The algorithm counts bytes in 32 bits.
    finish(state ^ (parts[0].len() + parts[1].len()) as u32)
}

fn copy(tail: &mut [u8; 4], at: usize, bytes: &[u8]) {
    for (slot, byte) in tail.iter_mut().skip(at).zip(bytes) {
        *slot = *byte;
    }
}

fn scramble(block: u32) -> u32 {
    block.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

fn mix(state: u32, block: u32) -> u32 {
    (state ^ scramble(block))
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

fn finish(mut state: u32) -> u32 {
    state ^= state >> 16;
    state = state.wrapping_mul(0x85eb_ca6b);
    state ^= state >> 13;
    state = state.wrapping_mul(0xc2b2_ae35);
    state ^ (state >> 16)
}
