//! Subtitles of the segments of a transcript.

use std::borrow::Cow;

use serde::Deserialize;

/// A segment, as providers tell it. Units: seconds.
#[derive(Debug, Deserialize)]
pub(super) struct Segment<'a> {
    start: f64,
    end: f64,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Reads segments; `None`: the JSON holds none.
pub(super) fn read(json: &str) -> Option<Vec<Segment<'_>>> {
    serde_json::from_str(json).ok()
}

/// Writes segments as SubRip.
pub(super) fn write_srt(segments: &[Segment<'_>], out: &mut String) {
    for (at, segment) in segments.iter().enumerate() {
        out.push_str(&format!("{}\n", at + 1));
        write_cue(segment, ',', true, out);
    }
}

/// Writes segments as WebVTT.
pub(super) fn write_vtt(segments: &[Segment<'_>], out: &mut String) {
    out.push_str("WEBVTT\n\n");
    for segment in segments {
        write_cue(segment, '.', false, out);
    }
}

fn write_cue(segment: &Segment<'_>, point: char, is_srt: bool, out: &mut String) {
    write_time(segment.start, point, out);
    out.push_str(" --> ");
    write_time(segment.end.max(segment.start), point, out);
    out.push('\n');
    // An empty line ends a cue, and an arrow would begin one.
    for line in segment.text.lines().map(str::trim) {
        let line = line.replace("-->", "->");
        let line = match is_srt {
            true => line,
            // WebVTT has markup.
            false => line.replace('&', "&amp;").replace('<', "&lt;"),
        };
        if !line.is_empty() {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out.push('\n');
}

fn write_time(seconds: f64, point: char, out: &mut String) {
    // The conversion saturates, so no time is too long.
    let ms = (seconds.max(0.0) * 1000.0).round() as u64;
    let (s, ms) = (ms / 1000, ms % 1000);
    let (hours, minutes, s) = (s / 3600, s / 60 % 60, s % 60);
    out.push_str(&format!("{hours:02}:{minutes:02}:{s:02}{point}{ms:03}"));
}
