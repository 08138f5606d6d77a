//! Event streams of AWS: the same frames however they are cut, and never one that was damaged.

use filters::event_frames::{EventFrame, FrameError, FrameReader};

use crate::choices::Choices;
use crate::damage;
use crate::frames::{event, exception, frame, text};
use crate::run::run;

type Frames = Vec<(String, Vec<u8>)>;

fn one(choices: &mut Choices<'_>) -> Vec<u8> {
    let payload = choices.text();
    let payload = payload.as_bytes();
    match choices.below(4) {
        0 => exception("throttlingException", payload),
        1 => {
            let kind = choices.pick::<&str>(&["event", "error", "x"]);
            let (kind, name) = (text(kind), text("odd"));
            let value = choices.bytes(20);
            let odd = (choices.byte() % 12, value.as_slice());
            let headers: [(&str, u8, &[u8]); 3] = [
                (":message-type", 7, &kind),
                (":event-type", 7, &name),
                ("x", odd.0, odd.1),
            ];
            frame(&headers, payload)
        }
        _ => event("contentBlockDelta", payload),
    }
}

pub fn stream(choices: &mut Choices<'_>) -> Vec<u8> {
    let count = choices.below(6);
    let frames: Vec<Vec<u8>> = (0..count).map(|_| one(choices)).collect();
    frames.concat()
}

/// The frames, and how the stream ended.
fn read(pieces: &[&[u8]]) -> (Frames, Result<(), FrameError>) {
    let mut reader = FrameReader::default();
    let mut frames = Vec::new();
    let mut take = |frame: EventFrame<'_>| {
        frames.push((frame.name.to_owned(), frame.payload.to_vec()));
        Ok::<(), FrameError>(())
    };
    for piece in pieces {
        if let Err(error) = reader.feed(piece, &mut take) {
            return (frames, Err(error));
        }
    }
    let ended = reader.finish();
    (frames, ended)
}

#[test]
fn frames_are_the_same_however_a_stream_is_cut() {
    run("event frames: cuts", |choices| {
        let stream = stream(choices);
        let stream = damage::bytes(choices, stream);
        let pieces = choices.cut(&stream);
        assert_eq!(read(&pieces), read(&[&stream]), "{stream:?} {pieces:?}");
    });
}

#[test]
fn a_damaged_frame_is_never_handed_out() {
    run("event frames: damage", |choices| {
        let stream = stream(choices);
        let (whole, _) = read(&[&stream]);
        let mut changed = stream.clone();
        if changed.is_empty() {
            return;
        }
        let at = choices.below(changed.len());
        changed[at] ^= 1 << choices.below(8);
        let (frames, ended) = read(&[&changed]);
        assert!(whole.starts_with(&frames), "{frames:?} of {whole:?}");
        assert!(ended.is_err(), "{stream:?}");
    });
}
