//! What every page of the documentation has around its content: head, search, navigation.

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
const GROUPS: [(&str, &str); 4] =
    [("odds", "Odds"), ("events", "Events and scores"), ("service", "Service"), ("v4", "The Odds API (/v4)")];

/// The operations that are documented: those that need a key.
pub(super) fn is_documented(tags: &[String]) -> bool {
    GROUPS.iter().any(|(tag, _)| tags.iter().any(|own| own == tag))
}

/// A whole page.
pub(super) fn page(document: &Document, draft: &PageDraft) -> String {
    let (title, version) = (escaped(&draft.title), escaped(&document.info.version));
    let mut out = String::with_capacity(draft.content.len() + (8 << 10));
    put!(&mut out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put!(&mut out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put!(&mut out, "<title>{title} · oddsbox</title>\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n");
    put!(&mut out, "<script src=\"/docs/docs.js\" defer></script>\n</head>\n<body>\n");
    put!(&mut out, "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<header>\n");
    put!(&mut out, "<a class=\"brand\" href=\"/docs\">oddsbox <small>{version}</small></a>\n");
    put!(&mut out, "<div class=\"search\" id=\"search\" hidden></div>\n");
    put!(
        &mut out,
        "<button id=\"menu\" type=\"button\" aria-controls=\"nav\" aria-expanded=\"false\" hidden>Menu</button>\n"
    );
    put!(&mut out, "</header>\n<div class=\"frame\">\n");
    navigation(document, &draft.url(), &mut out);
    put!(&mut out, "<main id=\"content\" tabindex=\"-1\">\n{}</main>\n</div>\n</body>\n</html>\n", draft.content);
    out
}

fn navigation(document: &Document, current: &str, out: &mut String) {
    put!(out, "<nav id=\"nav\" aria-label=\"Documentation\">\n<ul>\n");
    link("/docs", "Start here", current, out);
    put!(out, "</ul>\n");
    for (tag, title) in GROUPS {
        put!(out, "<h2>{title}</h2>\n<ul>\n");
        for (_, item) in document.paths.0.iter().filter(|(_, item)| item.get.tags.iter().any(|own| own == tag)) {
            link(&format!("/docs/{}", item.get.id), &item.get.summary, current, out);
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
