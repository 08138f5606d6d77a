//! The head of a WAV file whose length is not known yet: samples go out as they come.

/// The length of a head in bytes.
pub const HEAD_BYTES: usize = 44;
/// Bytes of a sample.
const SAMPLE_BYTES: u32 = 2;
/// Stands for a length that is not known. Readers take all bytes that follow.
const UNKNOWN_LENGTH: u32 = u32::MAX;

/// Returns the head of a file of 16-bit samples of one channel. Units: samples a second.
pub fn head(samples_per_s: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let fields: [&[u8]; 13] = [
        b"RIFF",
        &UNKNOWN_LENGTH.to_le_bytes(),
        b"WAVE",
        b"fmt ",
        &16_u32.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &samples_per_s.to_le_bytes(),
        &samples_per_s.saturating_mul(SAMPLE_BYTES).to_le_bytes(),
        &(SAMPLE_BYTES as u16).to_le_bytes(),
        &(8 * SAMPLE_BYTES as u16).to_le_bytes(),
        b"data",
        &UNKNOWN_LENGTH.to_le_bytes(),
    ];
    for (place, byte) in head.iter_mut().zip(fields.iter().flat_map(|field| *field)) {
        *place = *byte;
    }
    head
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn a_head_names_rate_width_and_an_open_end() {
        let head = head(24_000);
        assert_eq!(&head[..4], b"RIFF");
        assert_eq!(&head[8..16], b"WAVEfmt ");
        assert_eq!(&head[24..28], &24_000_u32.to_le_bytes());
        assert_eq!(&head[28..32], &48_000_u32.to_le_bytes());
        assert_eq!(&head[32..36], &[2, 0, 16, 0]);
        assert_eq!(&head[36..], b"data\xff\xff\xff\xff");
    }
}
