//! Suggestions for mistyped names in error messages.

/// The candidate with the smallest edit distance, if it is small enough for a typo.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.map(|candidate| (distance(name, candidate), candidate));
    let (edits, candidate) = near.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1 + name.chars().count() / 4).then_some(candidate)
}

/// The Levenshtein distance, ignoring case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_near_names_only() {
        let known = ["odds_format", "regions", "limit"];
        assert_eq!(nearest("odd_format", known.into_iter()), Some("odds_format"));
        assert_eq!(nearest("region", known.into_iter()), Some("regions"));
        assert_eq!(nearest("colour", known.into_iter()), None);
    }
}
