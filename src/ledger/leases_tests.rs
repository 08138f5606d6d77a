#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use super::super::journal::SEGMENT_BYTES;
use super::super::tests::{named_organization, start};
use super::*;
use crate::telemetry::metrics::Metrics;

#[tokio::test]
async fn an_organization_whose_rows_are_refused_takes_no_lease_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, store) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let granted = Usd::from_units(1_000);
    let mut asked = Vec::new();
    for name in ["a", "b", "poison", "c", "d"] {
        let id = named_organization(&store, name, granted).await;
        asked.push((name, id));
    }
    let poison = &asked.iter().find(|(name, _)| *name == "poison").unwrap().1;
    store.damage_balance(poison).await;
    let mut queued = Vec::new();
    let mut answers = Vec::new();
    for (name, id) in &asked {
        let request = LeaseRequest {
            organization_id: id.clone(),
            number: 1,
            change: LeaseChange::Take(Usd::from_units(10)),
        };
        let (done, answer) = oneshot::channel();
        queued.push(QueuedChange::Credit(request, done));
        answers.push((*name, answer));
    }
    ledger.change_together(queued).await;
    for (name, answer) in answers {
        let answer = answer.await.unwrap();
        match name {
            "poison" => assert!(answer.unwrap_err().is_about_rows()),
            _ => assert_eq!(answer.unwrap().unwrap().amount, granted, "{name}"),
        }
    }
}
