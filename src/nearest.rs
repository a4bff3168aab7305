//! The known name nearest to a mistyped one, for errors that help. A leaf.

/// The candidate with the fewest single-character edits, if these are few enough for a typing mistake.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A capital letter is no mistake.
    let typed = name.to_ascii_lowercase();
    let near = candidates.map(|candidate| (strsim::levenshtein(&typed, &candidate.to_ascii_lowercase()), candidate));
    let (edits, candidate) = near.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1 + name.chars().count() / 4).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_mistakes_and_nothing_far_off() {
        let known = ["odds_format", "regions", "limit"];
        assert_eq!(nearest("odd_format", known.into_iter()), Some("odds_format"));
        assert_eq!(nearest("ODDS_FORMAT", known.into_iter()), Some("odds_format"));
        assert_eq!(nearest("region", known.into_iter()), Some("regions"));
        assert_eq!(nearest("colour", known.into_iter()), None);
    }
}
