//! The documentation: the `OpenAPI` document for programs, and pages for people.
//!
//! The document is written by hand and compared with the router, the endpoints and their answers by the tests. The
//! pages are generated once for each process: a page for each endpoint from the document, and the guide from Markdown.
//! They load nothing from the network. The script adds search, copy buttons and *try it*; without it everything can be
//! read. A browser gets a landing page at `/` as well. In a demo, *try it* offers the demo's own keys.

mod demo;
mod document;
mod endpoint;
mod guide;
mod html;
mod landing;
mod layout;
pub(crate) mod pages;
mod reference;
mod sample;
mod site;
#[cfg(test)]
mod tests;

pub use demo::DemoKeys;

/// The document itself.
pub const OPENAPI: &str = include_str!("openapi.json");
