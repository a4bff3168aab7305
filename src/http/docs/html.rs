//! HTML text.

/// Writing to a `String` does not fail, so its result is ignored.
macro_rules! put {
    ($out:expr, $($part:tt)*) => {{
        let _ = std::fmt::Write::write_fmt($out, format_args!($($part)*));
    }};
}
pub(super) use put;

pub(super) fn escaped(text: &str) -> String {
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

/// The text of a page for the search: without tags, with single spaces.
pub(super) fn plain_text(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    let mut is_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            letter if !is_tag => text.push(letter),
            _ => {}
        }
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_tags_has_its_entities_decoded() {
        assert_eq!(plain_text(&format!("<p>a\n<b>{}</b></p>", escaped("1 < 2 & \"x\""))), "a 1 < 2 & \"x\"");
    }
}
