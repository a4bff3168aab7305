//! What every page of the documentation has around its content: head, search, navigation.

use super::demo::DEMO_FILE;
use super::document::Document;
use super::guide::CHAPTERS;
use super::html::{escaped, put};

/// One page as it is written: its path below `/docs`, its title, and the HTML of its content.
#[derive(Debug)]
pub(super) struct PageDraft {
    pub path: String,
    pub title: String,
    pub content: String,
}

impl PageDraft {
    pub(super) fn url(&self) -> String {
        if self.path.is_empty() { "/docs".to_owned() } else { format!("/docs/{}", self.path) }
    }
}

/// A page for one of the tags of the document, as a group of the navigation.
const GROUPS: [(&str, &str); 7] = [
    ("odds", "Odds"),
    ("events", "Events and scores"),
    ("changes", "Changes"),
    ("derived", "Derived prices"),
    ("history", "History"),
    ("service", "Service"),
    ("v4", "The Odds API (/v4)"),
];

/// The operations that are documented: those that need a key.
pub(super) fn is_documented(tags: &[String]) -> bool {
    GROUPS.iter().any(|(tag, _)| tags.iter().any(|own| own == tag))
}

/// What is around the content of every page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'d> {
    pub document: &'d Document,
    pub is_demo: bool,
}

impl Layout<'_> {
    /// A page of the documentation.
    pub(super) fn page(&self, draft: &PageDraft) -> String {
        let mut out = self.head(&format!("{} · oddsbox", draft.title));
        put!(
            &mut out,
            "<button id=\"menu\" type=\"button\" aria-controls=\"nav\" aria-expanded=\"false\" hidden>Menu</button>\n"
        );
        put!(&mut out, "</header>\n<div class=\"frame\">\n");
        navigation(self.document, &draft.url(), &mut out);
        put!(&mut out, "<main id=\"content\" tabindex=\"-1\">\n{}</main>\n</div>\n</body>\n</html>\n", draft.content);
        out
    }

    /// The page at `/`, which has no navigation.
    pub(super) fn landing(&self, content: &str) -> String {
        let mut out = self.head("oddsbox");
        put!(&mut out, "</header>\n<main id=\"content\" class=\"landing\" tabindex=\"-1\">\n{content}</main>\n");
        put!(&mut out, "</body>\n</html>\n");
        out
    }

    /// Everything up to the search field. A demo names the file with its keys, so that the script requests it only there.
    fn head(&self, title: &str) -> String {
        let (title, version) = (escaped(title), escaped(&self.document.info.version));
        let demo = if self.is_demo { format!(" data-demo-keys=\"/docs/{DEMO_FILE}\"") } else { String::new() };
        let mut out = String::with_capacity(32 << 10);
        put!(&mut out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        put!(&mut out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        put!(&mut out, "<title>{title}</title>\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n");
        put!(&mut out, "<script src=\"/docs/docs.js\" defer></script>\n</head>\n<body{demo}>\n");
        put!(&mut out, "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<header>\n");
        put!(&mut out, "<a class=\"brand\" href=\"/\">oddsbox <small>{version}</small></a>\n");
        put!(&mut out, "<div class=\"search\" id=\"search\" hidden></div>\n");
        out
    }
}

fn navigation(document: &Document, current: &str, out: &mut String) {
    put!(out, "<nav id=\"nav\" aria-label=\"Documentation\">\n<ul>\n");
    link("/docs", "Start here", current, out);
    put!(out, "</ul>\n");
    for (tag, title) in GROUPS {
        put!(out, "<h2>{title}</h2>\n<ul>\n");
        for operation in document
            .paths
            .0
            .iter()
            .map(|(_, item)| item.operation())
            .filter(|operation| operation.tags.iter().any(|own| own == tag))
        {
            link(&format!("/docs/{}", operation.id), &operation.summary, current, out);
        }
        put!(out, "</ul>\n");
    }
    put!(out, "<h2>Reference</h2>\n<ul>\n");
    for (path, title) in [("errors", "Errors"), ("headers", "Headers"), ("schemas", "Schemas")] {
        link(&format!("/docs/{path}"), title, current, out);
    }
    put!(out, "<li><a href=\"/openapi.json\">openapi.json</a></li>\n</ul>\n<h2>Guide</h2>\n<ul>\n");
    for chapter in CHAPTERS {
        link(&format!("/docs/guide/{}", chapter.path), chapter.title, current, out);
    }
    put!(out, "</ul>\n</nav>\n");
}

fn link(url: &str, title: &str, current: &str, out: &mut String) {
    let mark = if url == current { " aria-current=\"page\"" } else { "" };
    put!(out, "<li><a href=\"{url}\"{mark}>{}</a></li>\n", escaped(title));
}
