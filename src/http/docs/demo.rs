//! The keys of a demo, which its documentation offers for *try it*.

use std::fmt;
use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use http::header::CACHE_CONTROL;

use super::pages::{Page, docs_page};
use crate::http::exchange::reply::Freshness;

/// The path of the file below `/docs`.
pub(super) const DEMO_FILE: &str = "demo.json";

/// The two keys of a demo, shared by the server, which sets them, and the documentation, which serves them at
/// `/docs/demo.json`. A service that was built without this value has no such page.
#[derive(Clone, Default)]
pub struct DemoKeys(Arc<OnceLock<Page>>);

impl DemoKeys {
    /// Offers the keys from now on; later calls change nothing.
    pub fn offer(&self, sandbox: &str, live: &str) {
        let text = serde_json::json!({"sandbox": sandbox, "live": live}).to_string();
        let mut page = docs_page(text, "application/json", Freshness::Revalidated);
        page.headers.push((CACHE_CONTROL, HeaderValue::from_static("no-store")));
        let _ = self.0.set(page);
    }

    pub(super) fn page(&self) -> Option<&Page> {
        self.0.get()
    }
}

impl fmt::Debug for DemoKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DemoKeys(…)")
    }
}
