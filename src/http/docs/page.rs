//! The page: HTML from the document.

use std::fmt::Write;

use super::document::{Document, Media, Operation, Parameter, Response, Schema, Types, name_of};

/// Writing to a `String` does not fail, so its result says nothing.
macro_rules! put {
    ($out:expr, $($part:tt)*) => {{
        let _ = write!($out, $($part)*);
    }};
}

pub(super) fn render(document: &Document) -> String {
    let mut out = String::with_capacity(64 << 10);
    let info = &document.info;
    let title = escaped(&info.title);
    put!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put!(
        out,
        "<title>{title}: documentation</title>\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n</head>\n<body>\n"
    );
    put!(
        out,
        "<header>\n<h1>{title} <small>{}</small></h1>\n<p>{}</p>\n",
        escaped(&info.version),
        escaped(&info.summary)
    );
    put!(out, "<p>For programs: <a href=\"/openapi.json\">/openapi.json</a></p>\n</header>\n");
    contents(document, &mut out);
    put!(out, "<main>\n<section id=\"start\">\n<h2>Start here</h2>\n");
    put!(out, "<pre>curl -H \"X-API-Key: $KEY\" \"$BASE_URL/v1/sports/mma/odds?market=moneyline\"</pre>\n");
    for paragraph in info.description.split("\n\n") {
        put!(out, "<p>{}</p>\n", escaped(paragraph));
    }
    put!(out, "</section>\n");
    for tag in &document.tags {
        put!(out, "<section>\n<h2>{}</h2>\n<p>{}</p>\n", escaped(&tag.name), escaped(&tag.description));
        let tagged = document.paths.0.iter().filter(|(_, item)| item.get.tags.contains(&tag.name));
        for (path, item) in tagged {
            operation(document, path, &item.get, &mut out);
        }
        put!(out, "</section>\n");
    }
    errors(document, &mut out);
    headers(document, &mut out);
    schemas(document, &mut out);
    put!(out, "</main>\n</body>\n</html>\n");
    out
}

fn contents(document: &Document, out: &mut String) {
    put!(out, "<nav>\n<ul>\n<li><a href=\"#start\">Start here</a></li>\n");
    for (path, item) in &document.paths.0 {
        put!(out, "<li><a href=\"#{}\"><code>{}</code></a></li>\n", escaped(&item.get.id), escaped(path));
    }
    for (id, name) in [("errors", "Errors"), ("headers", "Headers"), ("shapes", "Shapes")] {
        put!(out, "<li><a href=\"#{id}\">{name}</a></li>\n");
    }
    put!(out, "</ul>\n</nav>\n");
}

fn operation(document: &Document, path: &str, operation: &Operation, out: &mut String) {
    let (id, summary) = (escaped(&operation.id), escaped(&operation.summary));
    put!(out, "<article id=\"{id}\">\n<h3>{summary}</h3>\n<p><code class=\"path\">GET {}</code></p>\n", escaped(path));
    if !operation.description.is_empty() {
        put!(out, "<p>{}</p>\n", escaped(&operation.description));
    }
    if !operation.parameters.is_empty() {
        put!(out, "<table>\n<thead><tr><th>Parameter</th><th>Takes</th><th></th></tr></thead>\n<tbody>\n");
        for parameter in operation.parameters.iter().filter_map(|reference| document.parameter(reference)) {
            parameter_row(parameter, out);
        }
        put!(out, "</tbody>\n</table>\n");
    }
    put!(out, "<table>\n<thead><tr><th>Answer</th><th></th></tr></thead>\n<tbody>\n");
    for (status, response) in &operation.responses.0 {
        let response = document.response(response);
        put!(out, "<tr><td><code>{status}</code></td><td>{}</td></tr>\n", escaped(&response.description));
    }
    put!(out, "</tbody>\n</table>\n");
    if let Some(ok) = operation.responses.get("200") {
        examples(ok, out);
    }
    put!(out, "</article>\n");
}

fn parameter_row(parameter: &Parameter, out: &mut String) {
    let note = if parameter.required { format!("{}, required", parameter.place) } else { parameter.place.clone() };
    put!(out, "<tr><td><code>{}</code><br><small>{note}</small></td>", escaped(&parameter.name));
    put!(out, "<td>{}</td><td>{}</td></tr>\n", takes(&parameter.schema), escaped(&parameter.description));
}

fn examples(response: &Response, out: &mut String) {
    for media in response.content.0.iter().map(|(_, media)| media) {
        for text in example_texts(media) {
            put!(out, "<pre>{}</pre>\n", escaped(&outdented(text)));
        }
    }
}

fn example_texts(media: &Media) -> impl Iterator<Item = &str> {
    let several = media.examples.0.iter().map(|(_, example)| example.value.get());
    media.example.as_ref().map(|example| example.get()).into_iter().chain(several)
}

/// The document indents an example by its depth; the page does not.
fn outdented(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    let indent = last.len() - last.trim_start().len();
    let line = |line: &str| line.get(indent..).filter(|_| line.starts_with(' ')).unwrap_or(line).to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What a value can be, in a few words.
fn takes(schema: &Schema) -> String {
    let mut text = match (&schema.reference, &schema.items) {
        (Some(target), _) => {
            let name = name_of(target);
            format!("<a href=\"#shape-{name}\">{name}</a>")
        }
        (None, Some(items)) => format!("list of {}", takes(items)),
        (None, None) if !schema.values.is_empty() => {
            let values: Vec<String> =
                schema.values.iter().map(|value| format!("<code>{}</code>", escaped(value))).collect();
            values.join(" ")
        }
        (None, None) => type_names(schema),
    };
    match (schema.minimum, schema.maximum) {
        (Some(least), Some(most)) => put!(text, " from {least} to {most}"),
        (Some(least), None) => put!(text, ", {least} or more"),
        _ => {}
    }
    if let Some(most) = schema.max_items {
        put!(text, ", {most} at most");
    }
    if let Some(default) = &schema.default {
        put!(text, "; default <code>{}</code>", escaped(default.get()));
    }
    text
}

fn type_names(schema: &Schema) -> String {
    match &schema.types {
        Some(Types::One(name)) => name.clone(),
        Some(Types::Any(names)) => names.join(" or "),
        None => "any".to_owned(),
    }
}

fn errors(document: &Document, out: &mut String) {
    put!(
        out,
        "<section id=\"errors\">\n<h2>Errors</h2>\n<p>Every error has the same shape, and those of /v4 a shape of their "
    );
    put!(
        out,
        "own. The code is for programs, the message says what to change, and the request id is in our log.</p>\n"
    );
    for (name, response) in document.components.responses.0.iter().filter(|(_, response)| !response.content.is_empty())
    {
        put!(out, "<h4>{name}</h4>\n<p>{}</p>\n", escaped(&response.description));
        examples(response, out);
    }
    put!(out, "</section>\n");
}

fn headers(document: &Document, out: &mut String) {
    put!(
        out,
        "<section id=\"headers\">\n<h2>Headers</h2>\n<table>\n<thead><tr><th>Header</th><th></th></tr></thead>\n<tbody>\n"
    );
    for (name, header) in &document.components.headers.0 {
        let example = serde_json::from_str::<String>(header.example.get());
        let example = example.unwrap_or_else(|_| header.example.get().to_owned());
        put!(out, "<tr><td><code>{name}</code></td><td>{}", escaped(&header.description));
        put!(out, "<br><code>{}</code></td></tr>\n", escaped(&example));
    }
    put!(out, "</tbody>\n</table>\n</section>\n");
}

fn schemas(document: &Document, out: &mut String) {
    put!(out, "<section id=\"shapes\">\n<h2>Shapes</h2>\n");
    for (name, schema) in &document.components.schemas.0 {
        put!(out, "<h4 id=\"shape-{name}\">{name}</h4>\n");
        if !schema.description.is_empty() {
            put!(out, "<p>{}</p>\n", escaped(&schema.description));
        }
        if schema.properties.is_empty() {
            put!(out, "<p>{}</p>\n", takes(schema));
            continue;
        }
        put!(out, "<table>\n<thead><tr><th>Field</th><th>Type</th><th></th></tr></thead>\n<tbody>\n");
        for (field, schema_of_field) in &schema.properties.0 {
            let note = if schema.required.contains(field) { "" } else { "<br><small>not always</small>" };
            put!(out, "<tr><td><code>{field}</code>{note}</td><td>{}</td>", takes(schema_of_field));
            put!(out, "<td>{}</td></tr>\n", escaped(&schema_of_field.description));
        }
        put!(out, "</tbody>\n</table>\n");
    }
    put!(out, "</section>\n");
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}
