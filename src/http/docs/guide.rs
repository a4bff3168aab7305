//! The guide: Markdown files that the repository shows as they are, and that the binary serves as pages.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::layout::PageDraft;

/// A chapter of the guide.
#[derive(Debug)]
pub(super) struct Chapter {
    /// Below `/docs/guide/`.
    pub path: &'static str,
    pub title: &'static str,
    text: &'static str,
}

pub(super) const CHAPTERS: [Chapter; 9] = [
    Chapter { path: "api", title: "API", text: include_str!("guide/api.md") },
    Chapter { path: "sports", title: "Sports and markets", text: include_str!("guide/sports.md") },
    Chapter { path: "feeds", title: "Feeds", text: include_str!("guide/feeds.md") },
    Chapter { path: "operating", title: "Operating", text: include_str!("guide/operating.md") },
    Chapter { path: "cluster", title: "More than one machine", text: include_str!("guide/cluster.md") },
    Chapter { path: "configuration", title: "Configuration", text: include_str!("guide/configuration.md") },
    Chapter { path: "guarantees", title: "Guarantees", text: include_str!("guide/guarantees.md") },
    Chapter { path: "performance", title: "Performance", text: include_str!("guide/performance.md") },
    Chapter { path: "troubleshooting", title: "Troubleshooting", text: include_str!("guide/troubleshooting.md") },
];

const CONTENTS: Chapter = Chapter { path: "", title: "Guide", text: include_str!("guide/README.md") };

pub(super) fn drafts() -> impl Iterator<Item = PageDraft> {
    std::iter::once(&CONTENTS).chain(&CHAPTERS).map(|chapter| PageDraft {
        path: format!("guide/{}", chapter.path).trim_end_matches('/').to_owned(),
        title: chapter.title.to_owned(),
        content: rendered(chapter.text),
    })
}

/// A chapter as HTML. Links between chapters lose their `.md`, headings get anchors, and tables can be scrolled.
fn rendered(markdown: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    let mut out = String::with_capacity(markdown.len() * 2);
    let adapted = events.iter().enumerate().flat_map(|(at, event)| adapted(event, &events[at..]));
    html::push_html(&mut out, adapted);
    out
}

fn adapted<'a>(event: &Event<'a>, rest: &[Event<'a>]) -> Vec<Event<'a>> {
    match event {
        Event::Start(Tag::Heading { level, id: None, classes, attrs }) if *level != HeadingLevel::H1 => {
            let text = rest.iter().skip(1).map_while(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(&**text),
                _ => None,
            });
            let id = Some(CowStr::from(anchor(&text.collect::<String>())));
            vec![Event::Start(Tag::Heading { level: *level, id, classes: classes.clone(), attrs: attrs.clone() })]
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let (link_type, title, id) = (*link_type, title.clone(), id.clone());
            vec![Event::Start(Tag::Link { link_type, dest_url: url_of(dest_url), title, id })]
        }
        Event::Start(Tag::Table(_)) => {
            vec![
                Event::Html("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">".into()),
                event.clone(),
            ]
        }
        Event::End(TagEnd::Table) => vec![event.clone(), Event::Html("</div>\n".into())],
        other => vec![other.clone()],
    }
}

/// `feeds.md#credits` is `/docs/guide/feeds#credits`.
fn url_of<'a>(link: &CowStr<'a>) -> CowStr<'a> {
    match link.split_once(".md") {
        Some((path, rest)) if !path.contains('/') => format!("/docs/guide/{path}{rest}").into(),
        _ => link.clone(),
    }
}

/// As the usual Markdown viewers derive it, so that links work there too.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn links_between_chapters_lead_to_pages_and_headings() {
        let pages: Vec<PageDraft> = drafts().collect();
        let mut links = 0;
        for page in &pages {
            for link in page.content.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let path = if path.is_empty() { page.url() } else { path.to_owned() };
                let target = pages.iter().find(|other| other.url() == path);
                let target = target.unwrap_or_else(|| panic!("{} links to {link}", page.path));
                assert!(anchor.is_empty() || target.content.contains(&format!("id=\"{anchor}\"")), "{link}");
                links += 1;
            }
        }
        assert!(links > 10, "{links}");
    }

    #[test]
    fn files_that_the_guide_names_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut named = 0;
        for chapter in &CHAPTERS {
            let code = chapter.text.split('`').skip(1).step_by(2);
            for path in code
                .filter(|code| ["tests/", "examples/", "benches/", "data/"].iter().any(|root| code.starts_with(root)))
            {
                assert!(root.join(path).exists(), "{}: {path}", chapter.path);
                named += 1;
            }
        }
        assert!(named > 10, "{named}");
    }

    /// The text of the chapter below a heading, up to the next one of the same level.
    fn section(chapter: &str, heading: &str) -> &'static str {
        let text = CHAPTERS.iter().find(|known| known.path == chapter).map(|known| known.text).unwrap_or_default();
        let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
        rest.split("\n## ").next().unwrap_or_default()
    }

    /// The fields of all entries of a catalogue, and those of `v4`.
    fn field_names(catalogue: &str) -> BTreeSet<String> {
        let lists: toml::Table = toml::from_str(catalogue).unwrap();
        let entries = lists.values().filter_map(toml::Value::as_array).flatten();
        let entries: Vec<&toml::Table> = entries.filter_map(toml::Value::as_table).collect();
        let inner = entries.iter().flat_map(|entry| entry.values()).filter_map(toml::Value::as_table);
        entries.iter().copied().chain(inner).flat_map(toml::Table::keys).cloned().collect()
    }

    #[test]
    fn example_of_a_catalogue_loads_and_each_field_is_explained() {
        let section = section("feeds", "The catalogue");
        let example = section.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let catalogue = crate::config::catalogue::parse(example).unwrap();
        assert!(catalogue.sports().count() >= 3 && catalogue.bookmakers().len() >= 2);
        let sports: Vec<_> = catalogue.sports().map(|(_, sport)| sport).collect();
        assert!(sports.iter().any(|sport| sport.v4.is_none()) && sports.iter().any(|sport| sport.v4.is_some()));
        for field in [example, crate::config::catalogue::BUILTIN].into_iter().flat_map(field_names) {
            assert!(section.contains(&format!("| `{field}` |")), "{field} is not explained");
        }
    }
}
