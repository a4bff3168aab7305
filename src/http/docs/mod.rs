//! The description of the interface: the `OpenAPI` document for programs, and the same as a page for people.
//!
//! The document is written by hand and held against the router, the endpoints and their answers by the tests. The page
//! is made from it at the start, needs no script and nothing from the network.

mod document;
mod page;
pub(crate) mod pages;
#[cfg(test)]
mod tests;

use self::document::Document;

/// The document itself.
pub const OPENAPI: &str = include_str!("openapi.json");
const STYLE: &str = include_str!("style.css");

/// The page.
fn html() -> String {
    match serde_json::from_str::<Document>(OPENAPI) {
        Ok(document) => page::render(&document),
        // A test reads the document, so this is not met; it is no reason not to start.
        Err(_) => "<!doctype html><title>oddsbox</title><p>See <a href=\"/openapi.json\">/openapi.json</a>.".to_owned(),
    }
}
