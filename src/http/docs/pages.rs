//! The pages that need no key: the root, the documentation and the liveness check. Prepared once, at the start.

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderName, HeaderValue};

use super::{OPENAPI, STYLE, html};
use crate::board::Body;
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::route::Route;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The page loads one stylesheet from here, and nothing else from anywhere.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const ROOT: &str = r#"{"service":"oddsbox","docs":"/docs","openapi":"/openapi.json","status":"/v1/status"}"#;
const HEALTHZ: &str = r#"{"status":"ok"}"#;

#[derive(Debug)]
pub(crate) struct Page {
    pub content: Content,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Debug)]
pub(crate) struct Pages {
    root: Page,
    healthz: Page,
    open_api: Page,
    docs: Page,
    docs_style: Page,
}

impl Pages {
    pub(crate) fn new() -> Self {
        let mut docs = page(html(), HTML, Freshness::Shared);
        docs.headers.push((CONTENT_SECURITY_POLICY, POLICY));
        docs.headers.push((REFERRER_POLICY, HeaderValue::from_static("no-referrer")));
        Pages {
            root: page(ROOT, JSON, Freshness::Shared),
            healthz: page(HEALTHZ, JSON, Freshness::Revalidated),
            open_api: page(OPENAPI, JSON, Freshness::Shared),
            docs,
            docs_style: page(STYLE, CSS, Freshness::Shared),
        }
    }

    /// The page of an open route; none for the others.
    pub(crate) fn get(&self, route: &Route<'_>) -> Option<&Page> {
        match route {
            Route::Root => Some(&self.root),
            Route::Healthz => Some(&self.healthz),
            Route::OpenApi => Some(&self.open_api),
            Route::Docs => Some(&self.docs),
            Route::DocsStyle => Some(&self.docs_style),
            _ => None,
        }
    }
}

fn page(text: impl Into<String>, media_type: HeaderValue, freshness: Freshness) -> Page {
    let body = Arc::new(Body::new(text.into().into_bytes(), None));
    Page { content: Content { media_type, ..Content::kept(body, freshness) }, headers: Vec::new() }
}
