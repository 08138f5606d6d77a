//! Forms of audio: however they are cut, they are one request or a refusal, and what goes out is a form.

use filters::models::front::Front;
use filters::models::fronts::transcriptions::{Transcriptions, Translations};
use filters::models::wires::{BodySlice, Quirks, WireKind};
use filters::multipart::{self, Form, FormError, FormReader};

use crate::choices::Choices;
use crate::damage;
use crate::models::target;
use crate::run::run;

const NAMES: [&str; 10] = [
    "model",
    "language",
    "response_format",
    "temperature",
    "stream",
    "timestamp_granularities[]",
    "known_speaker_names[]",
    "models[]",
    "x\"y",
    "file",
];
const AUDIO: [&[u8]; 5] = [
    b"OggS\0\x02",
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data",
    b"\xff\xfb\x90\x64",
    b"\r\n--",
    b"",
];

pub fn compose(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut form = Vec::new();
    for _ in 0..choices.below(5) {
        let name = *choices.pick(&NAMES);
        let text = choices.text();
        let value = *choices.pick(&["m", "en", "json", "srt", "0", "true", "word", &text]);
        let part =
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.extend_from_slice(part.as_bytes());
    }
    for _ in 0..choices.below(3) {
        let file_name = *choices.pick(&["a", "a.ogg", "../a", "a;b.wav"]);
        let head = format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        let audio = *choices.pick(&AUDIO);
        form.extend_from_slice(audio);
        form.extend_from_slice(&choices.bytes(40));
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--b--\r\n");
    damage::bytes(choices, form)
}

fn read(pieces: &[&[u8]]) -> Result<(Form, Vec<u8>), FormError> {
    let mut reader = FormReader::new("b")?;
    let mut files = Vec::new();
    for piece in pieces {
        reader.feed(piece, &mut files)?;
    }
    Ok((reader.finish()?, files))
}

#[test]
fn an_upload_is_read_or_refused_and_goes_out_as_a_form() {
    run("models: uploads", |choices| {
        let body = compose(choices);
        let whole = read(&[&body]);
        let pieces = choices.cut(&body);
        assert_eq!(read(&pieces), whole);
        let Ok((mut form, files)) = whole else {
            return;
        };
        form.boundary = "random-0123456789".into();
        let front: &dyn Front = match choices.once_in(2) {
            true => &Translations,
            false => &Transcriptions,
        };
        let request = match front.read_upload(form) {
            Ok(request) => request,
            Err(fault) => return assert!((400..500).contains(&fault.status()), "{fault:?}"),
        };
        let quirks = Quirks {
            drop_unknown_fields: choices.once_in(2),
            ..Quirks::default()
        };
        let wire = WireKind::Compatible.wire();
        let codec = wire.codec(request.payload.operation()).unwrap();
        let slices = codec.encode(&request, &target(&quirks)).unwrap();
        let sent: Vec<u8> = slices
            .into_iter()
            .flat_map(|slice| match slice {
                BodySlice::Bytes(bytes) => bytes.to_vec(),
                BodySlice::Upload(range) => {
                    files[range.start as usize..range.end as usize].to_vec()
                }
            })
            .collect();
        let parts = multipart::parts(&sent, "random-0123456789").unwrap();
        let count = |name: &str| parts.iter().filter(|part| part.name == name).count();
        assert_eq!(
            [count("model"), count("file"), count("models[]")],
            [1, 1, 0]
        );
        assert_eq!(parts.last().unwrap().content, files);
    });
}
