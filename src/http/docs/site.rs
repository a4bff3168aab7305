//! The landing page and every file below `/docs`, generated once for each process.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::document::Document;
use super::html::plain_text;
use super::layout::{Layout, PageDraft};
use super::{OPENAPI, endpoint, guide, landing, reference};

const HTML: &str = "text/html; charset=utf-8";

/// The text of a file and its media type.
#[derive(Debug)]
pub(in crate::http) struct SitePage {
    pub media_type: &'static str,
    pub text: Box<str>,
}

impl SitePage {
    fn html(text: String) -> Self {
        SitePage { media_type: HTML, text: text.into() }
    }
}

#[derive(Debug)]
pub(in crate::http) struct Site {
    /// What a browser gets at `/`.
    pub landing: SitePage,
    /// By the path below `/docs`, without slashes at its ends; the start page is the empty path.
    pub files: BTreeMap<String, SitePage>,
}

static SITE: LazyLock<Site> = LazyLock::new(|| Site::generate(false));
static DEMO_SITE: LazyLock<Site> = LazyLock::new(|| Site::generate(true));

impl Site {
    /// The site of a service; that of a demo says where its keys are.
    pub(in crate::http) fn of(is_demo: bool) -> &'static Self {
        if is_demo { &DEMO_SITE } else { &SITE }
    }

    fn generate(is_demo: bool) -> Self {
        let mut files = BTreeMap::new();
        let mut put = |path: &str, media_type, text: String| {
            files.insert(path.to_owned(), SitePage { media_type, text: text.into() });
        };
        put("style.css", "text/css; charset=utf-8", include_str!("style.css").to_owned());
        put("docs.js", "text/javascript; charset=utf-8", include_str!("docs.js").to_owned());
        // A test parses the document, so this does not fail; it is no reason not to start.
        let Ok(document) = serde_json::from_str::<Document>(OPENAPI) else {
            let text = "<a href=\"/openapi.json\">/openapi.json</a>";
            put("", HTML, text.to_owned());
            return Site { landing: SitePage::html(text.to_owned()), files };
        };
        let layout = Layout { document: &document, is_demo };
        let drafts = drafts(&document);
        put("search.json", "application/json", search_index(&drafts));
        for draft in &drafts {
            put(&draft.path, HTML, layout.page(draft));
        }
        Site { landing: SitePage::html(layout.landing(&landing::content())), files }
    }
}

fn drafts(document: &Document) -> Vec<PageDraft> {
    reference::drafts(document).into_iter().chain(endpoint::drafts(document)).chain(guide::drafts()).collect()
}

/// `[{"url","title","text"}]`, which the script searches.
fn search_index(drafts: &[PageDraft]) -> String {
    let entry = |draft: &PageDraft| serde_json::json!({"url": draft.url(), "title": draft.title, "text": plain_text(&draft.content)});
    serde_json::Value::Array(drafts.iter().map(entry).collect()).to_string()
}
