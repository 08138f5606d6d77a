//! OCR: the 400 rules of its requests, and the pages that answer them. Source: docs/model-gateway.md 2.13.

use bytes::Bytes;

use super::item_list::{ItemWriter, ListEnd};
use crate::fault::Fault;
use crate::json::{Object, Str};
use crate::models::check::describe::describe;
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;
use crate::money::Unit;
use crate::spooled_json::SpooledJson;

mod check;
mod document;
mod pages;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/ocr`.
#[derive(Debug)]
pub struct Ocr;

impl Front for Ocr {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(("ocr", "/v1/ocr"), Operation::Ocr, || {
            describe(include_str!("description.json"), &[&check::FIELDS])
        });
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(body, Vec::new()).map(Received::Complete)
    }

    fn read_spooled(&self, json: SpooledJson) -> Result<ModelRequest, Fault> {
        check::check(json.body, json.data)
    }

    fn writer(&self, _: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        let begin = b"{\"pages\":[".to_vec();
        Box::new(ItemWriter::new(identity, begin, write_end))
    }
}

fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    let member = |key: &str| end.member(key).unwrap_or("null");
    out.extend_from_slice(b"],\"model\":");
    Str::Plain(&end.identity.model).write(out);
    out.extend_from_slice(b",\"document_annotation\":");
    out.extend_from_slice(member("document_annotation").as_bytes());
    out.extend_from_slice(b",\"usage_info\":");
    let mut usage = Object::open(out);
    let pages = end.settlement.usage.units.get(Unit::Page);
    usage.number("pages_processed", pages);
    usage.raw("doc_size_bytes", member("doc_size_bytes"));
    usage.close();
    out.push(b'}');
}
