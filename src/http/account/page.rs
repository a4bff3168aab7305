//! The files of the page. They are compiled in, and load nothing but each other and the stylesheet of the documentation.

/// Each file below `/account` with its media type; the page itself is the empty path.
const FILES: [(&str, &str, &str); 3] = [
    ("", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("account.js", "text/javascript; charset=utf-8", include_str!("page/account.js")),
    ("account.css", "text/css; charset=utf-8", include_str!("page/account.css")),
];

pub(crate) fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy of the page forbids all of these; a browser would only say so in its console.
    #[test]
    fn page_has_no_inline_code_and_no_text_that_is_parsed_as_html() {
        for (path, _, text) in files() {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "style=\"",
                "<script>",
                " onclick",
            ] {
                assert!(!text.contains(forbidden), "{path}: {forbidden}");
            }
            for kept in [
                "localStorage",
                "sessionStorage",
                "indexedDB",
                "document.cookie",
                "history.",
                "location.hash",
                "location.search",
            ] {
                assert!(!text.contains(kept), "{path} may keep a key: {kept}");
            }
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{path} names another place");
        }
    }
}
