//! Batches as inserts into a table, over ClickHouse's HTTP interface.
//!
//! The name of a batch is the token of its insert, by which ClickHouse knows a second one: tables of the replicated engines and of
//! ClickHouse Cloud do that by themselves, others with `non_replicated_deduplication_window`, as our statement makes them.
//! Source: <https://clickhouse.com/docs/guides/developer/deduplicating-inserts-on-retries>

use reqwest::{RequestBuilder, Response, header};

use super::{Batch, MAX_REPLY_BYTES, media_type};
use crate::config::{ClickHouseConfig, Compression};
use crate::outbound::{self, Outbound};

/// What lines need to be read: times with a zone, objects in columns of text, members of later versions, and one block per
/// insert, so that a second one is known as the same.
const SETTINGS: [(&str, &str); 7] = [
    ("date_time_input_format", "best_effort"),
    ("input_format_json_read_objects_as_strings", "1"),
    ("input_format_json_read_arrays_as_strings", "1"),
    ("input_format_skip_unknown_fields", "1"),
    ("input_format_parallel_parsing", "0"),
    ("async_insert", "0"),
    ("wait_end_of_query", "1"),
];

/// A table.
pub(super) struct ClickHouse {
    config: ClickHouseConfig,
    client: Outbound,
}

impl ClickHouse {
    pub(super) fn new(config: &ClickHouseConfig, client: Outbound) -> Self {
        Self {
            config: config.clone(),
            client,
        }
    }

    /// Inserts a batch.
    ///
    /// Errors: why ClickHouse does not confirm it.
    pub(super) async fn insert(&self, batch: Batch) -> Result<(), String> {
        let (database, table) = (&self.config.database, &self.config.table);
        let statement = format!("INSERT INTO `{database}`.`{table}` FORMAT JSONEachRow");
        let token = batch.name.to_token();
        let token = [("insert_deduplication_token", token.as_str())];
        let settings = SETTINGS.iter().copied().chain(token);
        let compression = batch.name.compression;
        let request = self.request(&statement, settings)?;
        let request = request.header(header::CONTENT_TYPE, media_type(Compression::None));
        let request = match compression {
            Compression::None => request,
            Compression::Gzip => request.header(header::CONTENT_ENCODING, "gzip"),
            Compression::Zstd => request.header(header::CONTENT_ENCODING, "zstd"),
        };
        self.ask(request.body(batch.body)).await.map(drop)
    }

    /// Errors: the table is not there, or ClickHouse cannot be asked.
    pub(super) async fn find_table(&self) -> Result<(), String> {
        let (database, table) = (&self.config.database, &self.config.table);
        let statement = format!("EXISTS TABLE `{database}`.`{table}`");
        let answer = self.ask(self.request(&statement, [])?).await?;
        match answer.trim_ascii() {
            b"1" => Ok(()),
            _ => Err(format!(
                "ClickHouse has no table {database}.{table}: make it as `weirgate log-export schema` says"
            )),
        }
    }

    fn request<'s>(
        &self,
        statement: &'s str,
        settings: impl IntoIterator<Item = (&'s str, &'s str)>,
    ) -> Result<RequestBuilder, String> {
        let config = &self.config;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("query", statement);
        for (name, value) in settings {
            query.append_pair(name, value);
        }
        let request = self
            .client
            .post(&format!("{}/?{}", config.url, query.finish()));
        let request = request.map_err(|error| format!("ClickHouse: {error}"))?;
        let request = request.header("x-clickhouse-user", &config.user);
        Ok(match &config.password {
            Some(password) => request.header("x-clickhouse-key", password.expose()),
            None => request,
        })
    }

    async fn ask(&self, request: RequestBuilder) -> Result<bytes::Bytes, String> {
        let reply = request.send().await;
        let reply = reply.map_err(|error| format!("ClickHouse: {}", outbound::describe(error)))?;
        if let Some(refusal) = describe_refusal(&reply) {
            return Err(refusal);
        }
        let body = outbound::read_body(reply, MAX_REPLY_BYTES).await;
        body.map_err(|error| format!("ClickHouse: {error}"))
    }
}

/// Returns why ClickHouse refuses a request; `None`: it does not. Its words may quote lines, so only its code is told.
fn describe_refusal(reply: &Response) -> Option<String> {
    let code = reply.headers().get("x-clickhouse-exception-code");
    let code: Option<u32> = code.and_then(|code| code.to_str().ok()?.parse().ok());
    if reply.status().is_success() && code.is_none() {
        return None;
    }
    let status = reply.status();
    Some(match code {
        Some(code) => format!("ClickHouse answered {status} with its code {code}"),
        None => format!("ClickHouse answered {status}"),
    })
}
