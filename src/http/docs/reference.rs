//! The pages that are about all endpoints: the start page, errors, headers and schemas.

use serde_json::Value;
use serde_json::value::RawValue;

use super::document::{Document, Schema, Types, name_of};
use super::endpoint::examples;
use super::html::{escaped, put};
use super::layout::{PageDraft, is_documented};
use super::sample::samples;

/// The target of the example that a new reader sees first.
pub(super) const FIRST_REQUEST: &str = "/v1/sports/mma/odds?market=moneyline&limit=1";

pub(super) fn drafts(document: &Document) -> [PageDraft; 4] {
    let draft =
        |path: &str, title: &str, content: String| PageDraft { path: path.into(), title: title.into(), content };
    [
        draft("", "Documentation", start(document)),
        draft("errors", "Errors", errors(document)),
        draft("headers", "Headers", headers(document)),
        draft("schemas", "Schemas", schemas(document)),
    ]
}

fn start(document: &Document) -> String {
    let mut out = String::with_capacity(8 << 10);
    put!(
        &mut out,
        "<h1>oddsbox API</h1>\n<p>{}</p>\n<h2 id=\"first\">First request</h2>\n",
        escaped(&document.info.summary)
    );
    put!(&mut out, "<div class=\"samples\">\n");
    for (language, code) in samples(FIRST_REQUEST) {
        put!(
            &mut out,
            "<section data-language=\"{language}\">\n<h3>{language}</h3>\n<pre>{}</pre>\n</section>\n",
            escaped(&code)
        );
    }
    put!(&mut out, "</div>\n");
    for paragraph in document.info.description.split("\n\n") {
        put!(&mut out, "<p>{}</p>\n", escaped(paragraph));
    }
    put!(
        &mut out,
        "<h2 id=\"endpoints\">Endpoints</h2>\n<table>\n<thead><tr><th>Path</th><th>Response</th></tr></thead>\n<tbody>\n"
    );
    for (path, item) in document.paths.0.iter().filter(|(_, item)| is_documented(&item.operation().tags)) {
        let (id, summary) = (&item.operation().id, escaped(&item.operation().summary));
        put!(
            &mut out,
            "<tr><td><a href=\"/docs/{id}\"><code>{}</code></a></td><td>{summary}</td></tr>\n",
            escaped(path)
        );
    }
    put!(&mut out, "</tbody>\n</table>\n");
    // Error bodies of /v4 link to this anchor.
    put!(&mut out, "<h2 id=\"shape-V4ErrorCode\">Errors</h2>\n");
    put!(
        &mut out,
        "<p>All errors of <code>/v1</code> have the same format, and those of <code>/v4</code> that of The Odds API: <a href=\"/docs/errors\">codes and examples</a>.</p>\n"
    );
    put!(
        &mut out,
        "<h2 id=\"guide\">Guide</h2>\n<p><a href=\"/docs/guide\">The guide</a> explains how the service behaves, how to feed it and how to run it.</p>\n"
    );
    out
}

fn errors(document: &Document) -> String {
    let mut out = String::with_capacity(32 << 10);
    put!(
        &mut out,
        "<h1>Errors</h1>\n<p>Programs should use the code; the message says what to change, and the request id is "
    );
    put!(&mut out, "in the log of the service. Errors of <code>/v4</code> have the format of The Odds API.</p>\n");
    for (name, title) in [("ErrorCode", "Codes of /v1"), ("V4ErrorCode", "Codes of /v4")] {
        if let Some(schema) = document.components.schemas.get(name) {
            put!(&mut out, "<h2 id=\"{name}\">{title}</h2>\n<p class=\"codes\">{}</p>\n", takes(schema));
            // The description has a sentence for each status.
            put!(&mut out, "<ul>\n");
            for sentence in schema.description.trim_end_matches('.').split(". ") {
                put!(&mut out, "<li>{}</li>\n", escaped(sentence));
            }
            put!(&mut out, "</ul>\n");
        }
    }
    put!(&mut out, "<h2 id=\"examples\">Examples</h2>\n");
    let with_content = document.components.responses.0.iter().filter(|(_, response)| !response.content.is_empty());
    for (name, response) in with_content {
        put!(&mut out, "<h3 id=\"{name}\">{name}</h3>\n<p>{}</p>\n", escaped(&response.description));
        examples(response, &mut out);
    }
    out
}

fn headers(document: &Document) -> String {
    let mut out = String::with_capacity(8 << 10);
    put!(
        &mut out,
        "<h1>Headers</h1>\n<table>\n<thead><tr><th>Header</th><th>Meaning</th><th>Example</th></tr></thead>\n<tbody>\n"
    );
    for (name, header) in &document.components.headers.0 {
        let example = serde_json::from_str::<String>(header.example.get());
        let example = example.unwrap_or_else(|_| header.example.get().to_owned());
        put!(&mut out, "<tr id=\"{name}\"><td><code>{name}</code></td><td>{}</td>", escaped(&header.description));
        put!(&mut out, "<td><code>{}</code></td></tr>\n", escaped(&example));
    }
    put!(&mut out, "</tbody>\n</table>\n");
    out
}

fn schemas(document: &Document) -> String {
    let mut out = String::with_capacity(32 << 10);
    put!(&mut out, "<h1>Schemas</h1>\n");
    for (name, schema) in &document.components.schemas.0 {
        put!(&mut out, "<h2 id=\"{name}\">{name}</h2>\n");
        if !schema.description.is_empty() {
            put!(&mut out, "<p>{}</p>\n", escaped(&schema.description));
        }
        if schema.properties.is_empty() {
            put!(&mut out, "<p>{}</p>\n", takes(schema));
            continue;
        }
        put!(&mut out, "<table>\n<thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>\n<tbody>\n");
        for (field, schema_of_field) in &schema.properties.0 {
            let note = if schema.required.contains(field) { "" } else { "<br><small>optional</small>" };
            put!(&mut out, "<tr><td><code>{field}</code>{note}</td><td>{}</td>", takes(schema_of_field));
            put!(&mut out, "<td>{}</td></tr>\n", escaped(&schema_of_field.description));
        }
        put!(&mut out, "</tbody>\n</table>\n");
    }
    out
}

/// What a value can be, in a few words.
pub(super) fn takes(schema: &Schema) -> String {
    let mut text = match (&schema.reference, &schema.items) {
        (Some(target), _) => {
            let name = name_of(target);
            format!("<a href=\"/docs/schemas#{name}\">{name}</a>")
        }
        (None, Some(items)) => format!("list of {}", takes(items)),
        (None, None) if !schema.values.is_empty() => {
            let values: Vec<String> =
                schema.values.iter().flatten().map(|value| format!("<code>{}</code>", escaped(value))).collect();
            values.join(" ")
        }
        (None, None) if !schema.one_of.is_empty() => schema.one_of.iter().map(takes).collect::<Vec<_>>().join(" or "),
        (None, None) => type_names(schema),
    };
    match (schema.minimum, schema.maximum) {
        (Some(least), Some(most)) => put!(&mut text, " from {least} to {most}"),
        (Some(least), None) => put!(&mut text, ", {least} or more"),
        _ => {}
    }
    if let Some(most) = schema.max_items {
        put!(&mut text, ", at most {most}");
    }
    if let Some(default) = &schema.default {
        put!(&mut text, "; default <code>{}</code>", escaped(&as_sent(default)));
    }
    text
}

/// A default value as a client would write it in a query.
fn as_sent(value: &RawValue) -> String {
    match serde_json::from_str(value.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        _ => value.get().to_owned(),
    }
}

fn type_names(schema: &Schema) -> String {
    match &schema.types {
        Some(Types::One(name)) => name.clone(),
        Some(Types::Any(names)) => names.join(" or "),
        None => "any".to_owned(),
    }
}
