//! The document against the router, the endpoints and their answers.

#[path = "../../../tests/harness/schema.rs"]
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use schema::{check, resolved};

use super::OPENAPI;
use super::site::{Site, SitePage};
use crate::http::exchange::error::{DETAILS_URL, invalid_code_of};
use crate::http::exchange::query::Parameter;
use crate::http::exchange::route::Route;
use crate::http::stream;
use crate::http::testing::Fixture;
use crate::http::v1::{archive, best, closing, edges, events, fair, lines, odds, scores};
use crate::http::v4;

fn document() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// The files below `/docs`.
fn files() -> &'static BTreeMap<String, SitePage> {
    &Site::of(false).files
}

/// Every HTML page by its path below `/docs`, and the landing page as `/`.
fn html_pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let pages = files().iter().filter(|(_, page)| page.media_type.starts_with("text/html"));
    let pages = pages.map(|(path, page)| (path.as_str(), &*page.text));
    pages.chain([("/", &*Site::of(false).landing.text)])
}

/// The one operation of a path.
fn operation(item: &Value) -> &Value {
    item.get("get").unwrap_or(&item["post"])
}

fn method(item: &Value) -> &'static str {
    if item.get("get").is_some() { "GET" } else { "POST" }
}

/// A path of the document with its variables filled in.
fn filled(path: &str) -> String {
    path.replace("{sport_key}", "mma")
        .replace("{sport}", "mma_mixed_martial_arts")
        .replace("{event_id}", "mma-1")
        .replace("{hour}", "2026-11-14T22")
}

/// What must be sent beside a parameter for a path to answer.
fn needed(path: &str, name: &str) -> &'static str {
    if path.ends_with("/closing") {
        return if ["date", "event_ids"].contains(&name) { "" } else { "event_ids=mma-1&" };
    }
    if path.ends_with("/edges") {
        return if name == "kind" { "" } else { "kind=ev&" };
    }
    let is_past = path.starts_with("/v4/historical") || path.ends_with("/odds-history");
    let is_priced = ["/odds", "/odds-history", "/markets"].iter().any(|end| path.ends_with(end));
    match (path.starts_with("/v4/") && is_priced, is_past) {
        (true, true) => "regions=us&date=2026-11-14T23:39:00Z&",
        (false, true) => "date=2026-11-14T23:39:00Z&",
        (true, false) => "regions=us&",
        (false, false) => "",
    }
}

/// A value that a parameter does not take.
fn bad_value(path: &str, name: &str) -> &'static str {
    match name {
        // A list without items is no list there, but an id is never empty.
        "eventIds" => ",",
        // Any other text can be one.
        "name" | "description" => "",
        _ if path.starts_with("/v4/") => "~",
        _ => "%20,",
    }
}

/// The names of an operation's query parameters.
fn query_names(document: &Value, operation: &Value) -> BTreeSet<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters = parameters.map(|parameter| resolved(document, parameter));
    parameters.filter(|p| p["in"] == "query").map(|p| p["name"].as_str().unwrap().to_owned()).collect()
}

/// What the endpoint of a path reads.
fn known(path: &str) -> &'static [Parameter] {
    match path.rsplit('/').next() {
        _ if path.starts_with("/v4/") => known_v4(path),
        Some("odds") => odds::PARAMETERS,
        Some("scores") => scores::PARAMETERS,
        Some("events") => events::PARAMETERS,
        Some("lines") => lines::PARAMETERS,
        Some("closing") => closing::PARAMETERS,
        Some("stream") => stream::PARAMETERS,
        Some("changes") => stream::CHANGES_PARAMETERS,
        Some("best") => best::PARAMETERS,
        Some("fair") => fair::PARAMETERS,
        Some("edges") => edges::PARAMETERS,
        Some("{hour}") => archive::PARAMETERS,
        _ => &[],
    }
}

fn known_v4(path: &str) -> &'static [Parameter] {
    let (of_event, is_past) = (path.contains("{event_id}"), path.starts_with("/v4/historical"));
    match path.rsplit('/').next() {
        Some("odds") if is_past && of_event => v4::history::OF_ONE_EVENT,
        Some("events") if is_past => v4::history::OF_EVENTS,
        Some("odds") if is_past => v4::history::OF_ODDS,
        Some("odds-history") => v4::history::OF_ODDS,
        Some("odds") if of_event => v4::odds::OF_EVENT,
        Some("odds") if path.contains("upcoming") => v4::odds::OF_UPCOMING,
        Some("odds") => v4::odds::PARAMETERS,
        Some("markets") => v4::odds::OF_MARKETS,
        Some("scores") => v4::events::OF_SCORES,
        Some("events") => v4::events::PARAMETERS,
        Some("sports") => v4::sports::PARAMETERS,
        _ => &[],
    }
}

#[test]
fn its_paths_are_the_routes() {
    let document = document();
    let paths: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(paths, BTreeSet::from(Route::TEMPLATES));
    for path in paths {
        assert_eq!(Route::of(&filled(path)).template(), path);
        let operation = operation(&document["paths"][path]);
        let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(Route::of(&filled(path)).needs_key(), !is_open, "{path}");
        assert_eq!(Route::of(&filled(path)).is_post(), method(&document["paths"][path]) == "POST", "{path}");
        assert!(operation["operationId"].is_string());
    }
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn its_parameters_are_those_that_endpoints_read() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let names: BTreeSet<String> = known(path).iter().map(|parameter| parameter.name.to_owned()).collect();
        assert_eq!(query_names(&document, operation(item)), names, "{path}");
    }
}

#[test]
fn documented_examples_are_accepted_and_bad_values_are_refused_by_name() {
    let (document, fixture) = (document(), Fixture::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        for parameter in operation(item)["parameters"].as_array().into_iter().flatten() {
            let parameter = resolved(&document, parameter);
            let name = parameter["name"].as_str().unwrap();
            let at = format!("{}?{}", filled(path), needed(path, name));
            if parameter["in"] != "query" {
                continue;
            }
            // Every parameter has a minute of the key's to itself.
            fixture.clock.advance(std::time::Duration::from_mins(1));
            let refused = fixture.get(&format!("{at}{name}={}", bad_value(path, name)));
            if path.starts_with("/v4/") {
                let code = invalid_code_of(name);
                assert_eq!(
                    (refused.status.as_u16(), &refused.json()["error_code"]),
                    (422, &code.into()),
                    "{path} {name}"
                );
            } else {
                assert_eq!(refused.error(), (400, "invalid_parameter".into()), "{path} {name}");
                assert_eq!(refused.json()["error"]["param"], *name);
            }
            let example = match &parameter["example"] {
                Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(","),
                Value::String(text) => text.clone(),
                Value::Null => parameter["schema"]["enum"][0].as_str().unwrap().to_owned(),
                other => other.to_string(),
            };
            // A cursor fits one sort of page only, so its example is tried where it belongs.
            if name != "after" || path.ends_with("events") {
                assert_eq!(fixture.get(&format!("{at}{name}={example}")).status, 200, "{path} {name}={example}");
            }
            let booleans = if parameter["schema"]["type"] == "boolean" { &["true", "false"][..] } else { &[] };
            let values = parameter["schema"]["enum"].as_array().into_iter().flatten();
            for value in values.map(|value| value.as_str().unwrap()).chain(booleans.iter().copied()) {
                assert_eq!(fixture.get(&format!("{at}{name}={value}")).status, 200, "{path} {name}={value}");
            }
        }
    }
}

/// Generators name a type after its place if it has no name of its own, such as `UsageHoursInner`.
#[test]
fn every_object_of_the_document_has_a_name() {
    fn walk(at: &str, value: &Value, is_named: bool) {
        let has_fields = value.get("properties").is_some_and(Value::is_object) && value["type"] == "object";
        assert!(is_named || !has_fields, "{at} is an object without a name");
        for (key, field) in value.as_object().into_iter().flatten().filter(|(key, _)| !key.starts_with("example")) {
            walk(&format!("{at}/{key}"), field, at == "/components/schemas");
        }
        value.as_array().into_iter().flatten().for_each(|item| walk(at, item, false));
    }
    walk("", &document(), false);
}

#[test]
fn operations_have_different_names() {
    let document = document();
    let operations = document["paths"].as_object().unwrap().values().map(operation);
    let ids: Vec<&str> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(document: &Value, value: &Value) {
        resolved(document, value);
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(document, item)),
            Value::Object(fields) => fields.values().for_each(|field| walk(document, field)),
            _ => {}
        }
    }
    let document = document();
    walk(&document, &document);
}

/// The documented response of a path.
fn response<'d>(document: &'d Value, path: &str, status: u16) -> &'d Value {
    resolved(document, &operation(&document["paths"][path])["responses"][status.to_string()])
}

#[test]
fn real_answers_fit_the_schemas_and_have_only_documented_headers() {
    let (document, fixture) = (document(), Fixture::new());
    let keys = [&fixture.sandbox, &fixture.production, &fixture.golf_only, &fixture.monthly, &"nobody".to_owned()];
    let v1 = ["", "?limit=2", "?odds_format=decimal", "?odds_format=fractional", "?group=bout", "?limit=0", "?x=1"];
    let v4 = [
        "",
        "?regions=us,uk,eu,au&markets=h2h,spreads,totals,outrights,top5",
        "?regions=us,uk&oddsFormat=fractional&dateFormat=unix&daysFrom=3&all=true",
        "?bookmakers=unibet&includeLinks=true&includeSids=true&includeBetLimits=true",
        "?regions=us2&oddsFormat=american",
        "?regions=mars",
        "?dateFormat=julian",
    ];
    let sports = [
        ("mma", "mma_mixed_martial_arts"),
        ("boxing", "boxing_boxing"),
        ("tennis", "tennis_test_league"),
        ("american_football", "americanfootball_nfl"),
        ("golf", "golf_the_open_winner"),
        ("curling", "curling_curling"),
    ];
    let mut statuses = BTreeSet::new();
    for path in Route::TEMPLATES {
        let queries = if path.starts_with("/v4/") { v4 } else { v1 };
        for (sport, v4_sport) in sports.iter().take(if path.contains("{sport") { 6 } else { 1 }) {
            for (key, query) in keys.iter().flat_map(|key| queries.map(|query| (key, query))) {
                let event = if *sport == "american_football" { "nfl-1" } else { &format!("{sport}-1") };
                let target = path.replace("{sport_key}", sport).replace("{sport}", v4_sport);
                let target = target.replace("{event_id}", event).replace("{hour}", "2026-11-14T22");
                let got = fixture.get_as(key, &format!("{target}{query}"), &[]);
                statuses.insert(got.status.as_u16());
                let documented = response(&document, path, got.status.as_u16());
                assert!(documented.is_object(), "{target}{query}: {} is not documented", got.status);
                for name in got.headers.keys().filter(|name| !COMMON.contains(&name.as_str())) {
                    let names = documented["headers"].as_object().unwrap().keys();
                    assert!(
                        names.map(|name| name.to_lowercase()).any(|known| known == name.as_str()),
                        "{target}: {name}"
                    );
                }
                let Some(media) = documented["content"].get("application/json") else { continue };
                check(&document, &media["schema"], &got.json())
                    .unwrap_or_else(|fault| panic!("{target}{query}: {fault}"));
            }
            fixture.clock.advance(std::time::Duration::from_secs(61));
        }
    }
    assert_eq!(statuses, BTreeSet::from([200, 400, 401, 403, 404, 405, 422, 429]), "each of these was met");
}

/// Headers that say nothing of their own.
const COMMON: [&str; 5] =
    ["content-type", "x-content-type-options", "cache-control", "content-security-policy", "referrer-policy"];

#[test]
fn its_own_examples_fit_its_schemas() {
    let document = document();
    let paths = document["paths"].as_object().unwrap().values();
    let inline = paths.flat_map(|item| operation(item)["responses"].as_object().unwrap().values());
    let shared = document["components"]["responses"].as_object().unwrap().values();
    let mut checked = 0;
    for media in inline.chain(shared).filter_map(|response| response["content"].get("application/json")) {
        let several = media["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
        for example in media.get("example").into_iter().chain(several) {
            check(&document, &media["schema"], example).unwrap();
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn each_documented_operation_has_a_page_with_its_parameters() {
    let document = document();
    let mut pages = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let id = operation(item)["operationId"].as_str().unwrap();
        let Some(page) = files().get(id) else {
            assert!(!Route::of(&filled(path)).needs_key(), "{path} has no page");
            continue;
        };
        pages += 1;
        assert!(page.text.contains(&format!("<code class=\"path\">{} {path}</code>", method(item))), "{path}");
        for name in query_names(&document, operation(item)) {
            assert!(page.text.contains(&format!("<td><code>{name}</code>")), "{name}");
        }
    }
    assert!(pages >= 15, "{pages}");
}

#[test]
fn example_of_each_operation_is_answered() {
    let (document, fixture) = (document(), Fixture::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        let example = operation(item)["x-example"].as_str().unwrap_or_else(|| panic!("{path} has no example"));
        assert_eq!(Route::of(&filled(path)).template(), Route::of(example.split('?').next().unwrap()).template());
        // What changes something is tried by tests of its own.
        if method(item) == "GET" {
            assert_eq!(fixture.get(&example.replace("EVENT_ID", "mma-1")).status, 200, "{example}");
        }
    }
}

#[test]
fn pages_list_every_error_code_and_load_nothing_from_elsewhere() {
    let document = document();
    for schema in ["ErrorCode", "V4ErrorCode"] {
        for code in document["components"]["schemas"][schema]["enum"].as_array().unwrap() {
            assert!(files()["errors"].text.contains(code.as_str().unwrap()), "{code}");
        }
    }
    let anchor = DETAILS_URL.split_once('#').unwrap().1;
    assert!(files()[""].text.contains(&format!("id=\"{anchor}\"")), "errors lead to {anchor}");
    for (path, text) in html_pages() {
        assert!(!text.contains("src=\"http") && !text.contains("style="), "{path}");
        assert_eq!(text.matches("<table>").count(), text.matches("</table>").count(), "{path}");
    }
}

#[test]
fn every_link_of_the_pages_leads_somewhere() {
    for (path, text) in html_pages() {
        for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match target.strip_prefix("/docs") {
                Some(target) => target.trim_start_matches('/'),
                None if target.is_empty() => path,
                None => {
                    assert!(["/", "/account", "/openapi.json"].contains(&target), "{path} links to {link}");
                    continue;
                }
            };
            let found = if target == "/" { Some(&Site::of(false).landing) } else { files().get(target) };
            let found = found.unwrap_or_else(|| panic!("{path} links to {link}"));
            assert!(anchor.is_empty() || found.text.contains(&format!("id=\"{anchor}\"")), "{path} links to {link}");
        }
    }
}
