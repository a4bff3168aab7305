//! Test lengths.

/// The number for the short form of a test, or for the long form, which runs with `ODDSBOX_LONG_TESTS=1`.
pub(crate) fn short_or_long<T>(short: T, long: T) -> T {
    if std::env::var_os("ODDSBOX_LONG_TESTS").is_some_and(|value| value == "1") { long } else { short }
}
