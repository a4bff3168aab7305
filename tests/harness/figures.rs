//! A strict parser of the Prometheus text format.

use std::collections::{BTreeMap, BTreeSet};

/// Every sample by name and labels, with the labels sorted by name.
#[derive(Debug)]
pub struct Figures(BTreeMap<(String, Labels), f64>);

type Labels = BTreeMap<String, String>;

impl Figures {
    /// Parses a page; panics on anything that the format does not allow.
    pub fn parse(text: &str) -> Figures {
        assert!(text.ends_with('\n'), "the last line is not ended");
        let mut samples = BTreeMap::new();
        let mut families = BTreeSet::new();
        let mut family = (String::new(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                assert!(!help.is_empty() && is_name(name) && families.insert(name.to_owned()), "{line}");
                let kind = lines.next().and_then(|next| next.strip_prefix(&format!("# TYPE {name} ")));
                let kind = kind.unwrap_or_else(|| panic!("no type of {name}"));
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{name} is a {kind}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
                family = (name.to_owned(), kind.to_owned());
                continue;
            }
            let (name, labels, value) = sample(line);
            let suffix = name.strip_prefix(&family.0).unwrap_or_else(|| panic!("{line} is not of {}", family.0));
            let allowed: &[&str] = if family.1 == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(allowed.contains(&suffix), "{line}");
            assert!(value >= 0.0 || family.1 == "gauge", "{line}");
            assert!(samples.insert((name, labels), value).is_none(), "twice: {line}");
        }
        let figures = Figures(samples);
        figures.check_histograms();
        figures
    }

    /// The value of one series; `labels` are `name=value`, separated by commas.
    pub fn get(&self, name: &str, labels: &str) -> Option<f64> {
        let pairs = labels.split(',').filter(|pair| !pair.is_empty());
        let labels = pairs.map(|pair| pair.split_once('=').expect("a pair")).map(|(a, b)| (a.into(), b.into()));
        self.0.get(&(name.to_owned(), labels.collect())).copied()
    }

    /// Every value of a label.
    pub fn label(&self, name: &str) -> BTreeSet<&str> {
        self.0.keys().filter_map(|(_, labels)| labels.get(name)).map(String::as_str).collect()
    }

    pub fn label_names(&self) -> BTreeSet<&str> {
        self.0.keys().flat_map(|(_, labels)| labels.keys()).map(String::as_str).collect()
    }

    /// Asserts that buckets are cumulative, the last one is `+Inf`, and it equals the count.
    fn check_histograms(&self) {
        let mut series: BTreeMap<(String, Labels), Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), value) in &self.0 {
            let Some(family) = name.strip_suffix("_bucket") else { continue };
            let mut labels = labels.clone();
            let bound = labels.remove("le").expect("a bound").replace("+Inf", "inf");
            series.entry((family.to_owned(), labels)).or_default().push((bound.parse().expect("a bound"), *value));
        }
        for ((family, labels), mut buckets) in series {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{family}: {buckets:?}");
            let (bound, count) = *buckets.last().expect("a bucket");
            assert!(bound.is_infinite());
            let of = |suffix: &str| self.0.get(&(format!("{family}{suffix}"), labels.clone())).copied();
            assert_eq!(of("_count"), Some(count), "{family}");
            assert!(of("_sum").is_some_and(|sum| (sum > 0.0) == (count > 0.0)), "{family}");
        }
    }
}

fn is_name(text: &str) -> bool {
    let inner = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.chars().all(inner)
}

/// `name{label="value",…} number`
fn sample(line: &str) -> (String, Labels, f64) {
    let wrong = || -> ! { panic!("no sample: {line}") };
    let end = line.find(['{', ' ']).unwrap_or_else(|| wrong());
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| wrong());
            let (value, after) = quoted(after).unwrap_or_else(|| wrong());
            assert!(is_name(label) && labels.insert(label.to_owned(), value).is_none(), "{line}");
            if let Some(after) = after.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = after.strip_prefix(',').unwrap_or_else(|| wrong());
        }
    }
    let value = rest.strip_prefix(' ').and_then(|value| value.parse().ok()).unwrap_or_else(|| wrong());
    assert!(is_name(name), "{line}");
    (name.to_owned(), labels, value)
}

/// A text up to its closing quote, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped @ ('"' | '\\') => escaped,
                _ => return None,
            }),
            character => value.push(character),
        }
    }
    None
}
