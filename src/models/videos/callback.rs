//! Callbacks to URLs that callers choose. Only https and public addresses are allowed, which are checked when the
//! name is resolved, and redirects are not followed. The operator's own origins (`videos.callback_origins`) are the
//! exception. Source: docs/hostile-input.md 40.

use std::time::Duration;

use filters::fault::Fault;
use filters::fault_code::FaultCode;
use filters::models::videos::webhook::Webhook;
use reqwest::header::{CONTENT_TYPE, USER_AGENT};

use crate::outbound::{self, Outbound};

/// The time limit of a callback.
const TIMEOUT: Duration = Duration::from_secs(10);
const PRODUCT: &str = concat!("weirgate/", env!("CARGO_PKG_VERSION"));

/// The sender of callbacks.
pub struct Callbacks {
    client: Outbound,
}

/// The result of sending a webhook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Delivery {
    Taken,
    /// The receiver refused it, and may accept it later.
    Refused,
    /// The receiver did not respond.
    Failed,
    /// The address must not be asked.
    Prohibited,
    /// The receiver wants no more webhooks.
    Gone,
}

impl Delivery {
    /// Returns the label of the metric.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Prohibited => "prohibited",
            Self::Gone => "gone",
        }
    }
}

impl Callbacks {
    /// Creates the sender. `own` are the operator's own origins.
    ///
    /// Errors: no HTTP client can be created.
    pub(super) fn new(own: &[String]) -> reqwest::Result<Self> {
        Ok(Self {
            client: Outbound::direct(TIMEOUT, own.iter().map(String::as_str))?,
        })
    }

    /// Checks the address of a callback, without resolving names.
    ///
    /// Errors: 400 that names `callback_url`.
    pub fn check(&self, url: &str) -> Result<(), Fault> {
        let Err(why) = self.client.post(url) else {
            return Ok(());
        };
        let message = format!(
            "`callback_url` is not called: {why}; accepted is an https address that is public"
        );
        Err(Fault::invalid("callback_url", message).with_code(FaultCode::DestinationIpProhibited))
    }

    /// Sends a webhook.
    pub(super) async fn send(&self, url: &str, webhook: Webhook) -> Delivery {
        let Ok(request) = self.client.post(url) else {
            return Delivery::Prohibited;
        };
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, PRODUCT)
            .header("webhook-id", webhook.id)
            .header("webhook-timestamp", webhook.timestamp)
            .header("webhook-signature", webhook.signature)
            .body(webhook.body);
        match request.send().await {
            Ok(reply) if reply.status().is_success() => Delivery::Taken,
            Ok(reply) if reply.status() == http::StatusCode::GONE => Delivery::Gone,
            Ok(_) => Delivery::Refused,
            Err(error) if outbound::is_prohibited(&error) => Delivery::Prohibited,
            Err(_) => Delivery::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn callers_choose_public_https_addresses_alone() {
        _ = rustls::crypto::ring::default_provider().install_default();
        let own = ["http://127.0.0.1:8443".to_owned()];
        let callbacks = Callbacks::new(&own).unwrap();
        for (url, is_taken) in [
            ("https://example.com/hook", true),
            ("http://127.0.0.1:8443/hook", true),
            ("http://example.com/hook", false),
            ("https://127.0.0.1/hook", false),
            ("http://127.0.0.1:9/hook", false),
            ("https://127.0.0.1:8443/hook", false),
            ("https://[::1]/hook", false),
            ("https://2130706433/hook", false),
            ("https://0x7f.1/hook", false),
            ("https://169.254.169.254/latest", false),
            ("https://10.0.0.1/", false),
            ("https://u:p@example.com/", false),
            ("http://u:p@127.0.0.1:8443/hook", false),
            ("https://[2606:4700::1111]@169.254.169.254/", false),
            ("https://\u{ff11}\u{ff10}.0.0.1/", false),
            ("https://", false),
            ("file:///etc/passwd", false),
        ] {
            let checked = callbacks.check(url);
            assert_eq!(checked.is_ok(), is_taken, "{url}");
            if let Err(fault) = checked {
                assert_eq!(
                    (fault.status(), fault.param.as_deref()),
                    (400, Some("callback_url"))
                );
            }
        }
    }

    #[tokio::test]
    async fn a_name_of_a_private_address_is_not_called() {
        _ = rustls::crypto::ring::default_provider().install_default();
        let callbacks = Callbacks::new(&[]).unwrap();
        let webhook = Webhook {
            id: "msg_1".to_owned(),
            timestamp: "1".to_owned(),
            signature: "v1,".to_owned(),
            body: Vec::new(),
        };
        let told = callbacks.send("https://localhost/hook", webhook).await;
        assert_eq!(told, Delivery::Prohibited);
    }
}
