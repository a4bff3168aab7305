//! The pages that need no key: the root, the documentation, the account page and the liveness check. Prepared once: those of the documentation
//! when the first of them is requested, as many services never have a reader.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY};
use http::{HeaderName, HeaderValue};

use super::OPENAPI;
use super::demo::{DEMO_FILE, DemoKeys};
use super::site::{Site, SitePage};
use crate::board::Body;
use crate::http::account;
use crate::http::exchange::negotiate;
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::request_headers::RequestParts;
use crate::http::exchange::route::Route;

const JSON: &str = "application/json";

/// Pages load their stylesheet and script from here and send requests only here.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Of the root, which is HTML or JSON.
const VARY_ACCEPT: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

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
    account: BTreeMap<&'static str, Page>,
    site: OnceLock<SitePages>,
    demo_keys: Option<DemoKeys>,
}

/// What is generated for browsers.
#[derive(Debug)]
struct SitePages {
    /// The root as a browser gets it.
    landing: Page,
    docs: BTreeMap<&'static str, Page>,
}

impl Pages {
    pub(crate) fn new(demo_keys: Option<DemoKeys>) -> Self {
        let mut root = page(ROOT, JSON, Freshness::Shared);
        root.headers.push((VARY, VARY_ACCEPT));
        Pages {
            root,
            healthz: page(HEALTHZ, JSON, Freshness::Revalidated),
            open_api: page(OPENAPI, JSON, Freshness::Shared),
            account: account::files()
                .map(|(path, media_type, text)| (path, docs_page(text, media_type, Freshness::Shared)))
                .collect(),
            site: OnceLock::new(),
            demo_keys,
        }
    }

    /// The page of an open route; none for the others.
    pub(crate) fn get(&self, route: &Route<'_>, request: &RequestParts<'_>) -> Option<&Page> {
        match route {
            Route::Root if negotiate::prefers_html(request.headers.accept()) => Some(&self.site().landing),
            Route::Root => Some(&self.root),
            Route::Healthz => Some(&self.healthz),
            Route::OpenApi => Some(&self.open_api),
            Route::Account { page } => self.account.get(&**page),
            Route::Docs { page } if page == DEMO_FILE => self.demo_keys.as_ref()?.page(),
            Route::Docs { page } => self.site().docs.get(&**page),
            _ => None,
        }
    }

    fn site(&self) -> &SitePages {
        self.site.get_or_init(|| SitePages::new(Site::of(self.demo_keys.is_some())))
    }
}

impl SitePages {
    fn new(site: &'static Site) -> Self {
        let mut landing = site_page(&site.landing);
        landing.headers.push((VARY, VARY_ACCEPT));
        SitePages { landing, docs: site.files.iter().map(|(path, file)| (path.as_str(), site_page(file))).collect() }
    }
}

fn site_page(file: &'static SitePage) -> Page {
    docs_page(file.text.as_bytes(), file.media_type, Freshness::Shared)
}

/// A page with the headers that browsers need.
pub(super) fn docs_page(text: impl Into<Bytes>, media_type: &'static str, freshness: Freshness) -> Page {
    let mut page = page(text, media_type, freshness);
    page.headers.push((CONTENT_SECURITY_POLICY, POLICY));
    page.headers.push((REFERRER_POLICY, HeaderValue::from_static("no-referrer")));
    page
}

fn page(text: impl Into<Bytes>, media_type: &'static str, freshness: Freshness) -> Page {
    let body = Arc::new(Body::new(text, None));
    let media_type = HeaderValue::from_static(media_type);
    Page { content: Content { media_type, ..Content::kept(body, freshness) }, headers: Vec::new() }
}
