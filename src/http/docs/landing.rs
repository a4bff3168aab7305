//! What a browser sees at `/`: what this service is, and where to go from here.

use super::html::{escaped, put};
use super::reference::FIRST_REQUEST;
use super::sample::curl;

/// Where to go, by title, URL and what is there.
const PLACES: [(&str, &str, &str); 5] = [
    ("API documentation", "/docs", "a page for each endpoint, with examples in four languages and a form to try it"),
    ("Guide", "/docs/guide", "how prices, keys and limits work, and how to feed and run a server"),
    ("Account", "/account", "the limits of your key, what it has used, and requests to try with it"),
    ("openapi.json", "/openapi.json", "the same API for code generators and other programs"),
    ("Status", "/docs/getStatus", "the state of the service and the limits of your key: <code>GET /v1/status</code>"),
];

pub(super) fn content() -> String {
    let mut out = String::with_capacity(4 << 10);
    put!(
        &mut out,
        "<h1>oddsbox</h1>\n<p>This is an oddsbox server. It serves sports odds, events and scores as JSON over HTTP, "
    );
    put!(&mut out, "read-only.</p>\n");
    put!(&mut out, "<p id=\"health\" role=\"status\" hidden></p>\n");
    put!(&mut out, "<h2>First request</h2>\n<p id=\"key-note\">Every request needs a key, which the operator of this ");
    put!(&mut out, "server issues.</p>\n<pre>{}</pre>\n", escaped(&curl(FIRST_REQUEST)));
    put!(&mut out, "<h2>Where to go</h2>\n<ul class=\"places\">\n");
    for (title, url, what) in PLACES {
        put!(&mut out, "<li><a href=\"{url}\">{title}</a><br>{what}</li>\n");
    }
    put!(&mut out, "</ul>\n");
    out
}
