//! What a client accepts and what it has: media types and content codings by quality (RFC 9110, 12.5.1 and 12.5.3) and
//! validators (13.1.2).

use http::HeaderValue;

use crate::board::Encoding;

/// The quality of a coding in thousandths, as the client weighs it.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    zstd: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

/// The coding to answer with: the one the client weighs most, and of equals the smallest on the wire. A client that
/// accepts no coding gets the plain text nevertheless, which is more useful than an error.
pub(crate) fn encoding<'r>(mut sent: impl Iterator<Item = &'r HeaderValue>) -> Encoding {
    let (first, second) = (sent.next(), sent.next());
    if let (first, None) = (first, second)
        && let Some(usual) = usual(first.map(HeaderValue::as_bytes))
    {
        return usual;
    }
    let mut weights = Weights::default();
    first.into_iter().chain(second).chain(sent).for_each(|value| weights.add(value));
    // Plain text is acceptable unless it is ruled out, but a client that names a coding prefers it.
    let identity = weights.identity.or(weights.any.filter(|any| *any == 0)).unwrap_or(1);
    let zstd = weights.zstd.or(weights.any).unwrap_or(0);
    let gzip = weights.gzip.or(weights.any).unwrap_or(0);
    if zstd > 0 && zstd >= gzip && zstd >= identity {
        Encoding::Zstd
    } else if gzip > 0 && gzip >= identity {
        Encoding::Gzip
    } else {
        Encoding::Identity
    }
}

/// The choice for what most clients send, without weighing it.
fn usual(sent: Option<&[u8]>) -> Option<Encoding> {
    match sent {
        None | Some(b"identity") => Some(Encoding::Identity),
        Some(b"gzip" | b"gzip, deflate" | b"gzip, deflate, br") => Some(Encoding::Gzip),
        Some(b"zstd" | b"gzip, deflate, br, zstd") => Some(Encoding::Zstd),
        Some(_) => None,
    }
}

impl Weights {
    fn add(&mut self, value: &HeaderValue) {
        // A value that is not text names no coding that we have.
        let Ok(text) = value.to_str() else { return };
        for member in text.split(',') {
            let (coding, parameters) = member.split_once(';').unwrap_or((member, ""));
            let Some(weight) = weight(parameters) else { continue };
            let coding = coding.trim_matches([' ', '\t']);
            let slot = match coding {
                "*" => &mut self.any,
                _ if coding.eq_ignore_ascii_case("zstd") => &mut self.zstd,
                _ if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") => &mut self.gzip,
                _ if coding.eq_ignore_ascii_case("identity") => &mut self.identity,
                _ => continue,
            };
            *slot = Some(weight);
        }
    }
}

/// `q=0.5` in thousandths; one if there is none, `None` if it is not written as a quality is.
fn weight(parameters: &str) -> Option<u16> {
    let text = parameters.trim_matches([' ', '\t']);
    if text.is_empty() {
        return Some(1000);
    }
    let number = text.strip_prefix("q=").or_else(|| text.strip_prefix("Q="))?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths = decimals.bytes().chain(*b"000").take(3).fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// Whether the client gives HTML a higher quality than JSON. Browsers do; `*/*` and no header at all do not.
pub(crate) fn prefers_html<'r>(sent: impl Iterator<Item = &'r HeaderValue>) -> bool {
    let (mut html, mut json) = (MediaWeight::default(), MediaWeight::default());
    for member in sent.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')) {
        let mut parts = member.split(';').map(str::trim_ascii);
        let range = parts.next().unwrap_or_default();
        // Parameters of the media type itself do not matter: there is one HTML page and one JSON document.
        let quality = parts.find(|part| part.starts_with("q=") || part.starts_with("Q="));
        let Some(weight) = weight(quality.unwrap_or_default()) else { continue };
        html.add(range, ["*/*", "text/*", "text/html"], weight);
        json.add(range, ["*/*", "application/*", "application/json"], weight);
    }
    html.weight > json.weight
}

/// The quality of one media type: that of the most specific range that matches it, 0 if none does.
#[derive(Clone, Copy, Debug, Default)]
struct MediaWeight {
    /// 1 for `*/*`, 2 for a type, 3 for a subtype.
    specificity: usize,
    weight: u16,
}

impl MediaWeight {
    /// `matching` are the ranges that match the media type, from general to specific.
    fn add(&mut self, range: &str, matching: [&str; 3], weight: u16) {
        let Some(at) = matching.iter().position(|known| range.eq_ignore_ascii_case(known)) else { return };
        if at + 1 >= self.specificity {
            *self = MediaWeight { specificity: at + 1, weight };
        }
    }
}

/// Whether the client has the representation that the tag names. Compared weakly, as a conditional GET is.
pub(crate) fn has_current<'r>(mut sent: impl Iterator<Item = &'r HeaderValue>, etag: &[u8]) -> bool {
    sent.any(|value| value.as_bytes() == etag || names(value.as_bytes(), etag))
}

/// Whether a list of tags names one. Tags may hold commas, so the list is read quote by quote.
fn names(mut list: &[u8], etag: &[u8]) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    loop {
        list = list.trim_ascii_start();
        list = list.strip_prefix(b"W/").unwrap_or(list);
        let Some(end) = list.strip_prefix(b"\"").and_then(|rest| rest.iter().position(|byte| *byte == b'"')) else {
            return false;
        };
        let (tag, rest) = list.split_at(end + 2);
        if tag == etag {
            return true;
        }
        let Some(rest) = rest.trim_ascii_start().strip_prefix(b",") else { return false };
        list = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepting(values: &[&str]) -> Encoding {
        let values: Vec<HeaderValue> = values.iter().map(|value| HeaderValue::from_str(value).unwrap()).collect();
        encoding(values.iter())
    }

    #[test]
    fn codings_are_chosen_by_quality() {
        use Encoding::{Gzip, Identity, Zstd};
        for (sent, chosen) in [
            (&[][..], Identity),
            (&[""], Identity),
            (&["gzip"], Gzip),
            (&["zstd"], Zstd),
            (&["identity"], Identity),
            (&["gzip, deflate"], Gzip),
            (&["gzip, deflate, br"], Gzip),
            (&["gzip", "zstd"], Zstd),
            (&["gzip, deflate, br, zstd"], Zstd),
            (&["GZIP;q=1.0 , ZSTD;q=0.5"], Gzip),
            (&["gzip;q=0.5", "zstd;q=0.501"], Zstd),
            (&["x-gzip"], Gzip),
            (&["br"], Identity),
            (&["*"], Zstd),
            (&["*;q=0.1, zstd;q=0"], Gzip),
            (&["identity, gzip;q=0.5"], Identity),
            (&["identity;q=0.5, gzip;q=0.5"], Gzip),
            (&["gzip;q=0"], Identity),
            (&["gzip;q=0.001"], Gzip),
            (&["identity;q=0"], Identity),
            (&["identity;q=0, gzip"], Gzip),
            (&["*;q=0"], Identity),
            (&["*;q=0, gzip"], Gzip),
            (&["gzip;q=2"], Identity),
            (&["gzip;q=1.001"], Identity),
            (&["gzip;q=0.1234"], Identity),
            (&["gzip;level=9, zstd"], Zstd),
        ] {
            assert_eq!(accepting(sent), chosen, "{sent:?}");
        }
    }

    #[test]
    fn html_is_preferred_only_with_a_higher_quality_than_json() {
        for (sent, html) in [
            (&[][..], false),
            (&[""], false),
            (&["*/*"], false),
            (&["text/html"], true),
            (&["TEXT/HTML;Q=0.5"], true),
            (&["text/*"], true),
            (&["text/html;charset=utf-8;q=0.9, */*;q=0.8"], true),
            // Firefox and Chrome.
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], true),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"], true),
            (&["application/json"], false),
            (&["application/json, text/html"], false),
            (&["text/html, application/json;q=0.9"], true),
            (&["text/html;q=0.9", "application/json"], false),
            (&["text/html;q=0.9", "application/json;q=0.5"], true),
            (&["application/*, text/html;q=0.5"], false),
            (&["*/*, text/html;q=0.5"], false),
            (&["*/*;q=0.1, text/html;q=0"], false),
            (&["text/html;q=0"], false),
            (&["text/html;q=2"], false),
            (&["image/png"], false),
        ] {
            let values: Vec<HeaderValue> = sent.iter().map(|value| HeaderValue::from_str(value).unwrap()).collect();
            assert_eq!(prefers_html(values.iter()), html, "{sent:?}");
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        let etag = b"\"abc\"";
        for (sent, same) in [
            ("\"abc\"", true),
            ("W/\"abc\"", true),
            ("*", true),
            (" * ", true),
            ("\"x\", \"abc\"", true),
            ("\"a,b\" ,W/\"abc\"", true),
            ("\"abc-gzip\"", false),
            ("abc", false),
            ("\"abc", false),
            ("\"x\" \"abc\"", false),
            ("w/\"abc\"", false),
            ("", false),
        ] {
            let value = HeaderValue::from_str(sent).unwrap();
            assert_eq!(has_current([&value].into_iter(), etag), same, "{sent}");
        }
        assert!(!has_current(std::iter::empty(), etag));
    }

    proptest! {
        #[test]
        fn no_header_panics(bytes in "[\\t -~]{0,60}", near in "[*a-z;q=0-9., W/\"]{0,60}") {
            for text in [bytes, near] {
                let value = HeaderValue::from_str(&text).unwrap();
                let _ = (encoding([&value].into_iter()), has_current([&value].into_iter(), b"\"a\""));
                let _ = prefers_html([&value].into_iter());
            }
        }
    }
}
