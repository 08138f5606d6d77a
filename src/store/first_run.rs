//! Creates an organization and a key at the very first start, so that one can try the gateway at once.

use filters::accounts::{FIRST_RUN_LABEL, FIRST_RUN_ORGANIZATION, KeyText, Plan};
use filters::audit::PROGRAM;
use filters::money::Usd;

use super::{DEFAULT_PROJECT, NewKey, OpenedStore, StoreError};

/// Its credit, in units of 1e-18 USD: ten dollars.
const CREDIT: Usd = Usd::from_units(10 * 10_i128.pow(18));

/// What the first start created. It has no `Debug`, because it holds a key.
pub struct FirstRun {
    pub organization: &'static str,
    /// Its key, which is shown only once.
    pub key: KeyText,
}

/// Creates the organization `default` with credit and one key, if this start created the SQLite file and a sandbox is
/// configured.
///
/// Source: docs/interface.md, First run.
pub async fn first_run(
    opened: &OpenedStore,
    has_sandbox: bool,
    now_ms: i64,
) -> Result<Option<FirstRun>, StoreError> {
    if !opened.is_new_file || !has_sandbox {
        return Ok(None);
    }
    let store = opened.store.by(&PROGRAM);
    store
        .create_organization(FIRST_RUN_ORGANIZATION, Plan::None, now_ms)
        .await?;
    store
        .add_credit(FIRST_RUN_ORGANIZATION, CREDIT, now_ms)
        .await?;
    let new = NewKey {
        organization: FIRST_RUN_ORGANIZATION,
        project: DEFAULT_PROJECT,
        label: FIRST_RUN_LABEL,
        expires_at_ms: None,
        ..NewKey::default()
    };
    let (key, _) = store.create_key(&new, now_ms).await?;
    Ok(Some(FirstRun {
        organization: FIRST_RUN_ORGANIZATION,
        key,
    }))
}
