//! The only writer of the command line: results go to stdout, everything else to stderr.
//!
//! A result is a table for people or JSON for programs. Both come from the same records, so their field names agree.
//! Styles appear only on a terminal, and never if `NO_COLOR` is set.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use clap::builder::StyledStr;
use serde_json::{Map, Value};

use super::progress::WorkProgress;

/// The outcome of a command. Source: docs/interface.md, Commands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// 0: the command succeeded.
    Done,
    /// 1: the command failed.
    Failed,
    /// 2: the arguments were wrong.
    Usage,
    /// 2: what a verdict is about could not be found out, by a command whose exit code 1 is a verdict.
    NoVerdict,
    /// 78: the configuration is invalid.
    Configuration,
}

impl Exit {
    /// Returns the process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage | Self::NoVerdict => 2,
            Self::Configuration => 78,
        }
    }

    /// Returns the outcome of a command whose exit code 1 is a verdict, which a failure is not.
    #[must_use]
    pub fn without_verdict(self) -> Self {
        match self {
            Self::Failed => Self::NoVerdict,
            other => other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The format of a list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum OutputFormat {
    /// Columns, for people.
    #[default]
    Table,
    /// JSON with the table's field names, for programs.
    Json,
}

/// A row of a result: its fields by name, in the order of the columns.
pub type Record = Map<String, Value>;

/// The streams to which a command writes.
pub struct Output {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    is_out_styled: bool,
    is_err_styled: bool,
    result: ResultState,
}

/// The state of the result so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ResultState {
    Written,
    /// The reader has closed the pipe, as `head` does, and wants no more.
    Unwanted,
    /// The result could not be written.
    Lost,
}

impl Output {
    /// Creates an output on the process's own streams.
    pub fn from_process() -> Self {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            is_out_styled: !is_plain && std::io::stdout().is_terminal(),
            is_err_styled: !is_plain && std::io::stderr().is_terminal(),
            result: ResultState::Written,
        }
    }

    /// Creates an output in memory, without styles, and the handle that reads it.
    pub fn captured() -> (Self, Captured) {
        let captured = Captured::default();
        let output = Self {
            out: Box::new(captured.out.clone()),
            err: Box::new(captured.err.clone()),
            is_out_styled: false,
            is_err_styled: false,
            result: ResultState::Written,
        };
        (output, captured)
    }

    /// Makes a bar for long work on stderr, which appears on a terminal alone.
    pub fn progress(&self) -> WorkProgress {
        WorkProgress::new(self.is_err_styled)
    }

    /// Writes a line of the result to stdout.
    pub fn line(&mut self, text: &str) {
        self.text(text);
        self.text("\n");
    }

    /// Writes a part of the result to stdout unchanged.
    pub fn text(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes());
        self.record_written(&written);
    }

    /// Remembers whether stdout has accepted a part of the result. A closed stdout must not cause a panic; `finish`
    /// reports it.
    fn record_written(&mut self, written: &std::io::Result<()>) {
        let Err(error) = written else {
            return;
        };
        if self.result == ResultState::Written {
            self.result = match error.kind() {
                ErrorKind::BrokenPipe => ResultState::Unwanted,
                _ => ResultState::Lost,
            };
        }
    }

    /// Writes a line to stderr that is not part of the result.
    pub fn note(&mut self, text: &str) {
        // If stderr is closed, the message cannot be reported anywhere.
        let _ = writeln!(self.err, "{text}");
    }

    /// Writes a text of the argument parser to stdout.
    pub fn styled_text(&mut self, text: &StyledStr) {
        let text = render(text, self.is_out_styled);
        self.text(&text);
    }

    /// Writes a text of the argument parser to stderr.
    pub fn styled_note(&mut self, text: &StyledStr) {
        let text = render(text, self.is_err_styled);
        self.note(text.trim_end());
    }

    /// Writes a warning to stderr.
    pub fn warn(&mut self, text: &str) {
        let label = style("warning:", "33;1", self.is_err_styled);
        self.note(&format!("{label} {text}"));
    }

    /// Writes the reason of a failure to stderr and returns [`Exit::Failed`].
    pub fn fail(&mut self, text: &str) -> Exit {
        let label = style("error:", "31;1", self.is_err_styled);
        self.note(&format!("{label} {text}"));
        Exit::Failed
    }

    /// Writes an indented JSON value to stdout.
    pub fn json(&mut self, value: &Value) {
        self.line(&format!("{value:#}"));
    }

    /// Writes a list.
    ///
    /// Shape: a JSON array of objects, or a table, which names its columns even without rows.
    pub fn records(&mut self, format: OutputFormat, columns: &[&str], records: &[Record]) {
        match format {
            OutputFormat::Json => {
                let objects = records.iter().cloned().map(Value::Object).collect();
                self.json(&Value::Array(objects));
            }
            OutputFormat::Table => self.write_table(columns, records),
        }
    }

    /// Writes what a command has done.
    ///
    /// Shape: `note` on stderr, and on stdout `line`, or the JSON object `done`.
    pub fn done(&mut self, format: OutputFormat, note: &str, line: Option<&str>, done: &Value) {
        self.note(note);
        match (format, line) {
            (OutputFormat::Json, _) => self.json(done),
            (OutputFormat::Table, Some(line)) => self.line(line),
            (OutputFormat::Table, None) => {}
        }
    }

    /// Writes one record.
    ///
    /// Shape: a JSON object, or a table of one row.
    pub fn record(&mut self, format: OutputFormat, columns: &[&str], record: Record) {
        match format {
            OutputFormat::Json => self.json(&Value::Object(record)),
            OutputFormat::Table => self.write_table(columns, &[record]),
        }
    }

    /// Passes what was written on at once.
    pub fn flush(&mut self) {
        let flushed = self.out.flush();
        self.record_written(&flushed);
    }

    /// Returns whether the reader has gone, so that nobody reads what comes.
    pub fn is_unwanted(&self) -> bool {
        self.result != ResultState::Written
    }

    /// Flushes stdout. A command fails if its result could not be written, but not if its reader wanted no more.
    pub fn finish(&mut self, exit: Exit) -> Exit {
        self.flush();
        if exit == Exit::Done && self.result == ResultState::Lost {
            return self.fail("the result could not be written to stdout");
        }
        exit
    }

    fn write_table(&mut self, columns: &[&str], records: &[Record]) {
        let rows: Vec<Vec<String>> = records
            .iter()
            .map(|record| {
                columns
                    .iter()
                    .map(|name| format_cell(record.get(*name)))
                    .collect()
            })
            .collect();
        let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let widths = column_widths(&names, &rows);
        let head = align(&names, &widths);
        self.line(&style(&head, "1", self.is_out_styled));
        for row in rows {
            self.line(&align(&row, &widths));
        }
    }
}

/// The text written to an output in memory.
#[derive(Clone, Default)]
pub struct Captured {
    out: OutputBuffer,
    err: OutputBuffer,
}

impl Captured {
    /// Returns the text written to stdout.
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// Returns the text written to stderr.
    pub fn err(&self) -> String {
        self.err.text()
    }
}

#[derive(Clone, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl OutputBuffer {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn render(text: &StyledStr, is_styled: bool) -> String {
    if is_styled {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}

fn style(text: &str, code: &str, is_styled: bool) -> String {
    if is_styled {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Formats a value as a cell: on one line without control characters, and as a dash if it is empty.
fn format_cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let items: Vec<_> = items.iter().map(|item| format_cell(Some(item))).collect();
            items.join(",")
        }
        Some(other) => other.to_string(),
    };
    if text.is_empty() {
        return "-".to_owned();
    }
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

fn column_widths(names: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = vec![0; names.len()];
    for row in rows.iter().map(Vec::as_slice).chain([names]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

fn align(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<String> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    cells.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn records() -> Vec<Record> {
        let rows = json!([
            {"name": "acme", "limit": null, "tags": ["a", "b"]},
            {"name": "a\u{1b}[31m name", "limit": 12, "tags": []},
        ]);
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row.as_object().unwrap().clone()).collect()
    }

    fn shown(format: OutputFormat) -> String {
        let (mut output, captured) = Output::captured();
        output.records(format, &["name", "limit", "tags"], &records());
        captured.out()
    }

    #[test]
    fn a_table_aligns_its_columns_and_keeps_control_characters_out() {
        let table = shown(OutputFormat::Table);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[0], "name         limit  tags");
        assert_eq!(lines[1], "acme         -      a,b");
        assert_eq!(lines[2], "a [31m name  12     -");
    }

    #[test]
    fn json_is_an_array_with_the_field_names_of_the_table() {
        let json: Value = serde_json::from_str(&shown(OutputFormat::Json)).unwrap();
        assert_eq!(json[0]["name"], "acme");
        assert!(json[0]["limit"].is_null());
        assert_eq!(json[1]["limit"], 12);
    }

    #[test]
    fn no_record_is_an_empty_array_and_a_bare_head() {
        for (format, expected) in [
            (OutputFormat::Json, "[]\n"),
            (OutputFormat::Table, "name\n"),
        ] {
            let (mut output, captured) = Output::captured();
            output.records(format, &["name"], &[]);
            assert_eq!(captured.out(), expected);
        }
    }

    #[test]
    fn errors_go_to_stderr_alone() {
        let (mut output, captured) = Output::captured();
        assert_eq!(output.fail("no"), Exit::Failed);
        assert_eq!(
            (captured.out(), captured.err()),
            (String::new(), "error: no\n".to_owned())
        );
    }

    #[test]
    fn a_result_that_could_not_be_written_is_a_failure_unless_nobody_wanted_it() {
        struct Closed(ErrorKind);
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for (kind, exit, said) in [
            (ErrorKind::StorageFull, Exit::Failed, true),
            (ErrorKind::BrokenPipe, Exit::Done, false),
        ] {
            let (mut output, captured) = Output::captured();
            output.out = Box::new(Closed(kind));
            output.line("text");
            assert_eq!(output.finish(Exit::Done), exit);
            assert_eq!(!captured.err().is_empty(), said, "{kind}");
        }
    }
}
