//! Every file below `/docs`, generated once for each process.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::document::Document;
use super::html::plain_text;
use super::layout::{PageDraft, page};
use super::{OPENAPI, endpoint, guide, reference};

/// The text of a file and its media type.
#[derive(Debug)]
pub(in crate::http) struct SitePage {
    pub media_type: &'static str,
    pub text: String,
}

/// By the path below `/docs`, without slashes at its ends; the start page is the empty path.
pub(in crate::http) static SITE: LazyLock<BTreeMap<String, SitePage>> = LazyLock::new(|| {
    let mut site = BTreeMap::new();
    let mut put = |path: &str, media_type, text: String| {
        site.insert(path.to_owned(), SitePage { media_type, text });
    };
    put("style.css", "text/css; charset=utf-8", include_str!("style.css").to_owned());
    put("docs.js", "text/javascript; charset=utf-8", include_str!("docs.js").to_owned());
    match serde_json::from_str::<Document>(OPENAPI) {
        Ok(document) => {
            let drafts = drafts(&document);
            put("search.json", "application/json", search_index(&drafts));
            for draft in &drafts {
                put(&draft.path, "text/html; charset=utf-8", page(&document, draft));
            }
        }
        // A test parses the document, so this does not happen; it is no reason not to start.
        Err(_) => put("", "text/html; charset=utf-8", "<a href=\"/openapi.json\">/openapi.json</a>".to_owned()),
    }
    site
});

fn drafts(document: &Document) -> Vec<PageDraft> {
    reference::drafts(document).into_iter().chain(endpoint::drafts(document)).chain(guide::drafts()).collect()
}

/// `[{"url","title","text"}]`, which the script searches.
fn search_index(drafts: &[PageDraft]) -> String {
    let entry = |draft: &PageDraft| serde_json::json!({"url": draft.url(), "title": draft.title, "text": plain_text(&draft.content)});
    serde_json::Value::Array(drafts.iter().map(entry).collect()).to_string()
}
