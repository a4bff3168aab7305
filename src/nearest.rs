//! Suggestions for mistyped names in error messages.

/// The candidate with the smallest edit distance, if it is small enough for a typo.
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
    fn suggests_near_names_only() {
        let known = ["odds_format", "regions", "limit"];
        assert_eq!(nearest("odd_format", known.into_iter()), Some("odds_format"));
        assert_eq!(nearest("ODDS_FORMAT", known.into_iter()), Some("odds_format"));
        assert_eq!(nearest("region", known.into_iter()), Some("regions"));
        assert_eq!(nearest("colour", known.into_iter()), None);
    }
}
