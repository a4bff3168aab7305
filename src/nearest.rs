//! Suggestions for mistyped names in error messages.

/// The candidate with the smallest edit distance, if it is small enough for a typo.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let edits_max = 1 + length / 4;
    // There are at least as many edits as the lengths differ by. Whoever sends names that are far longer costs us nothing.
    let candidates = candidates.filter(|candidate| length.abs_diff(candidate.chars().count()) <= edits_max);
    // A capital letter is no mistake.
    let typed = name.to_ascii_lowercase();
    let near = candidates.map(|candidate| (strsim::levenshtein(&typed, &candidate.to_ascii_lowercase()), candidate));
    let (edits, candidate) = near.min_by_key(|(edits, _)| *edits)?;
    (edits <= edits_max).then_some(candidate)
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

    /// Comparing this one with all of them would take minutes.
    #[test]
    fn name_that_is_too_long_for_a_typo_is_compared_with_nothing() {
        let known: Vec<String> = (0..1000).map(|at| format!("a_competition_with_the_number_{at}")).collect();
        let endless = "a_competition_".repeat(100_000);
        assert_eq!(nearest(&endless, known.iter().map(String::as_str)), None);
        let longer = format!("{}_of_it", known[7]);
        assert_eq!(nearest(&longer, known.iter().map(String::as_str)), Some(&*known[7]));
    }
}
