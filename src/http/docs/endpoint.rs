//! The page of one endpoint: its parameters, examples, responses, and a form to try it.

use super::document::{Document, DocumentedParameter, Media, Operation, PathItem, Response};
use super::html::{escaped, put};
use super::layout::{PageDraft, is_documented};
use super::reference::takes;
use super::sample::{curl_post, samples};

pub(super) fn drafts(document: &Document) -> impl Iterator<Item = PageDraft> {
    let documented = document.paths.0.iter().filter(|(_, item)| is_documented(&item.operation().tags));
    documented.map(|(path, item)| PageDraft {
        path: item.operation().id.clone(),
        title: title(path, item.operation()),
        content: content(document, path, item),
    })
}

/// Both versions have operations of the same name, and search results and browser tabs show only the title.
fn title(path: &str, operation: &Operation) -> String {
    let version = if path.starts_with("/v4/") { " (/v4)" } else { "" };
    format!("{}{version}", operation.summary)
}

fn content(document: &Document, path: &str, item: &PathItem) -> String {
    let (operation, method) = (item.operation(), if item.is_get() { "GET" } else { "POST" });
    let mut out = String::with_capacity(16 << 10);
    put!(&mut out, "<h1>{}</h1>\n", escaped(&title(path, operation)));
    put!(
        &mut out,
        "<p><code class=\"path\">{method} {}</code></p>\n<p>{}</p>\n",
        escaped(path),
        escaped(&operation.description)
    );
    let parameters: Vec<&DocumentedParameter> =
        operation.parameters.iter().filter_map(|reference| document.parameter(reference)).collect();
    request(&parameters, &mut out);
    put!(&mut out, "<h2 id=\"example\">Example</h2>\n");
    let example = operation.example.as_deref().unwrap_or(path);
    if item.is_get() {
        put!(&mut out, "<div class=\"samples\">\n");
        for (language, code) in samples(example) {
            put!(
                &mut out,
                "<section data-language=\"{language}\">\n<h3>{language}</h3>\n<pre>{}</pre>\n</section>\n",
                escaped(&code)
            );
        }
        put!(&mut out, "</div>\n");
    } else {
        put!(&mut out, "<pre>{}</pre>\n", escaped(&curl_post(example, operation.example_body.as_deref())));
    }
    if let Some(ok) = operation.responses.get("200") {
        examples(ok, &mut out);
    }
    // What changes something is not tried by the way.
    if item.is_get() {
        try_it(path, operation, &parameters, &mut out);
    }
    responses(document, operation, &mut out);
    out
}

fn request(parameters: &[&DocumentedParameter], out: &mut String) {
    if parameters.is_empty() {
        return;
    }
    put!(out, "<h2 id=\"parameters\">Parameters</h2>\n");
    put!(out, "<table>\n<thead><tr><th>Name</th><th>Value</th><th>Meaning</th></tr></thead>\n<tbody>\n");
    for parameter in parameters {
        let note = if parameter.required { format!("{}, required", parameter.place) } else { parameter.place.clone() };
        put!(out, "<tr><td><code>{}</code><br><small>{note}</small></td>", escaped(&parameter.name));
        put!(out, "<td>{}</td><td>{}</td></tr>\n", takes(&parameter.schema), escaped(&parameter.description));
    }
    put!(out, "</tbody>\n</table>\n");
}

/// The form is built by the script from this: without a script it would do nothing.
fn try_it(path: &str, operation: &Operation, parameters: &[&DocumentedParameter], out: &mut String) {
    let example = operation.example.as_deref().unwrap_or(path);
    let (example_path, query) = example.split_once('?').unwrap_or((example, ""));
    put!(out, "<h2 id=\"try\" hidden>Try it</h2>\n<form class=\"try\" data-path=\"{}\" hidden>\n", escaped(path));
    for parameter in parameters {
        let value = if parameter.place == "path" {
            value_in_path(path, example_path, &parameter.name)
        } else {
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(name, _)| *name == parameter.name)
                .map(|(_, value)| value)
        };
        let (name, place) = (escaped(&parameter.name), escaped(&parameter.place));
        put!(
            out,
            "<label><span>{name}</span><input name=\"{name}\" data-in=\"{place}\" value=\"{}\" ",
            escaped(value.unwrap_or_default())
        );
        put!(out, "autocomplete=\"off\" spellcheck=\"false\"></label>\n");
    }
    put!(out, "</form>\n");
}

/// What stands in the example where the template has a variable.
fn value_in_path<'e>(path: &str, example: &'e str, name: &str) -> Option<&'e str> {
    let at = path.split('/').position(|segment| segment == format!("{{{name}}}"))?;
    example.split('/').nth(at)
}

fn responses(document: &Document, operation: &Operation, out: &mut String) {
    put!(out, "<h2 id=\"responses\">Responses</h2>\n");
    put!(out, "<table>\n<thead><tr><th>Status</th><th>Meaning</th><th>Headers</th></tr></thead>\n<tbody>\n");
    for (status, response) in &operation.responses.0 {
        let response = document.response(response);
        put!(out, "<tr><td><code>{status}</code></td><td>{}", escaped(&response.description));
        if status != "200" && !response.content.is_empty() {
            put!(out, "<details><summary>Example</summary>");
            examples(response, out);
            put!(out, "</details>");
        }
        put!(out, "</td><td>");
        for (name, _) in &response.headers.0 {
            put!(out, "<a href=\"/docs/headers#{name}\"><code>{name}</code></a> ");
        }
        put!(out, "</td></tr>\n");
    }
    put!(out, "</tbody>\n</table>\n");
}

pub(super) fn examples(response: &Response, out: &mut String) {
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
