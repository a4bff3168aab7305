//! The pages that need no key: the root, the documentation and the liveness check. Prepared once, at the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderName, HeaderValue};

use super::{OPENAPI, SITE, SitePage};
use crate::board::Body;
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::route::Route;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Pages load their stylesheet and script from here and send requests only here.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
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
    docs: BTreeMap<&'static str, Page>,
}

impl Pages {
    pub(crate) fn new() -> Self {
        Pages {
            root: page(ROOT, JSON, Freshness::Shared),
            healthz: page(HEALTHZ, JSON, Freshness::Revalidated),
            open_api: page(OPENAPI, JSON, Freshness::Shared),
            docs: SITE.iter().map(|(path, file)| (path.as_str(), docs_page(file))).collect(),
        }
    }

    /// The page of an open route; none for the others.
    pub(crate) fn get(&self, route: &Route<'_>) -> Option<&Page> {
        match route {
            Route::Root => Some(&self.root),
            Route::Healthz => Some(&self.healthz),
            Route::OpenApi => Some(&self.open_api),
            Route::Docs { page } => self.docs.get(&**page),
            _ => None,
        }
    }
}

fn docs_page(file: &'static SitePage) -> Page {
    let mut page = page(file.text.as_str(), HeaderValue::from_static(file.media_type), Freshness::Shared);
    page.headers.push((CONTENT_SECURITY_POLICY, POLICY));
    page.headers.push((REFERRER_POLICY, HeaderValue::from_static("no-referrer")));
    page
}

fn page(text: &'static str, media_type: HeaderValue, freshness: Freshness) -> Page {
    let body = Arc::new(Body::new(text.as_bytes(), None));
    Page { content: Content { media_type, ..Content::kept(body, freshness) }, headers: Vec::new() }
}
