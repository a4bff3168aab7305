//! The page: a handful of files inside the binary, each compressed once, when it is first requested.

use std::sync::Arc;

use crate::board::Body;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal $name:literal $media_type:ident),+ $(,)?) => {
        &[$(($path, $media_type, include_str!(concat!("page/", $name)))),+]
    };
}

const ALL: &[(&str, &str, &str)] = files![
    "/" "index.html" HTML,
    "/style.css" "style.css" CSS,
    "/icon.svg" "icon.svg" SVG,
    "/theme.js" "theme.js" JAVASCRIPT,
    "/app.js" "app.js" JAVASCRIPT,
    "/server.js" "server.js" JAVASCRIPT,
    "/dom.js" "dom.js" JAVASCRIPT,
    "/plot.js" "plot.js" JAVASCRIPT,
    "/overview.js" "overview.js" JAVASCRIPT,
    "/board.js" "board.js" JAVASCRIPT,
    "/boardcontrols.js" "boardcontrols.js" JAVASCRIPT,
    "/boardtable.js" "boardtable.js" JAVASCRIPT,
    "/edges.js" "edges.js" JAVASCRIPT,
    "/event.js" "event.js" JAVASCRIPT,
    "/fair.js" "fair.js" JAVASCRIPT,
    "/live.js" "live.js" JAVASCRIPT,
    "/moment.js" "moment.js" JAVASCRIPT,
    "/stepplot.js" "stepplot.js" JAVASCRIPT,
    "/feeds.js" "feeds.js" JAVASCRIPT,
    "/keys.js" "keys.js" JAVASCRIPT,
    "/audit.js" "audit.js" JAVASCRIPT,
    "/service.js" "service.js" JAVASCRIPT,
    "/cluster.js" "cluster.js" JAVASCRIPT,
    "/dialog.js" "dialog.js" JAVASCRIPT,
    "/filters.js" "filters.js" JAVASCRIPT,
    "/prices.js" "prices.js" JAVASCRIPT,
];

/// What is shown for a link that does not open.
pub(super) const REFUSED: &str = include_str!("page/refused.html");

/// One file.
#[derive(Debug)]
pub(super) struct File {
    path: &'static str,
    pub media_type: &'static str,
    pub body: Arc<Body>,
}

#[derive(Debug)]
pub(super) struct Files(Vec<File>);

impl Files {
    pub(super) fn new() -> Self {
        let file = |(path, media_type, text): &(&'static str, &'static str, &'static str)| File {
            path,
            media_type,
            body: Arc::new(Body::new(text.as_bytes(), None)),
        };
        Files(ALL.iter().map(file).collect())
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.0.iter().find(|file| file.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_page_stays_below_its_bound() {
        let bytes: usize = ALL.iter().map(|(_, _, text)| text.len()).sum::<usize>() + REFUSED.len();
        assert!(bytes < 180_000, "{bytes} bytes");
    }

    #[test]
    fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
        for (path, media_type, text) in ALL.iter().copied().chain([("refused", HTML, REFUSED)]) {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("//cdn") && !text.contains("https://") && !text.contains("http://"), "{path}");
            if media_type == HTML {
                for inline in ["<style", " style=", " onclick=", "javascript:", "<script>"] {
                    assert!(!text.contains(inline), "{path}: {inline}");
                }
            }
        }
    }

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let files = Files::new();
        for (path, _, text) in ALL {
            for named in text.split('"').filter_map(|part| part.strip_prefix("./")) {
                assert!(files.get(&format!("/{named}")).is_some(), "{path} names {named}");
            }
        }
    }
}
