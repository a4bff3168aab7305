//! The query string: which parameters were sent, decoded, each at most once and none empty.
//!
//! A mistake is never ignored. A misspelt `odd_format=decimal` that quietly returned American prices would cost
//! somebody money, so an unknown name is an error that names the nearest known one.

use std::borrow::Cow;

use super::error::ApiError;
use super::percent::{self, Plus};
use super::route::Version;
use crate::keys::may_hold_key;
use crate::nearest::nearest;

/// A parameter that an endpoint takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: &'static str,
    /// What a value can be, as the end of the sentence "`name` takes …".
    pub takes: &'static str,
    /// Whether its value is a list separated by commas, which `/v4` joins when it is repeated.
    pub is_list: bool,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, takes: &'static str) -> Self {
        Parameter { name, takes, is_list: false }
    }

    pub(crate) const fn list(name: &'static str, takes: &'static str) -> Self {
        Parameter { name, takes, is_list: true }
    }
}

/// The key in the query: every endpoint accepts it, and none reads it as a parameter of its own.
const API_KEY: Parameter = Parameter::new("api_key", "an API key; better send it in the X-API-Key header");

/// The same in the shape of The Odds API.
const API_KEY_V4: &str = "apiKey";

/// As many as the endpoint with the most parameters takes.
const PARAMETERS_MAX: usize = 17;

const BADLY_ENCODED: &str = "is not UTF-8 in percent-encoding (a plain % is written %25)";

/// The query's key, under a name that the version has for it. Of repeated ones it is the last, as of every parameter of
/// `/v4`; on `/v1` a repeated one is an error, see [`check_key`].
pub(crate) fn api_key(query: Option<&str>, version: Version) -> Option<Cow<'_, str>> {
    let is_key = |sent: &str| match version {
        Version::V1 => is_named(sent, API_KEY.name),
        Version::V4 => is_any_key(sent),
    };
    let value = pieces(query?).filter(|(name, _)| is_key(name)).last()?.1;
    // What cannot be decoded is no key either, and an empty text opens nothing.
    Some(percent::decode(value, Plus::Space).unwrap_or_default())
}

/// Rejects a repeated key on `/v1`. Only for requests that are authenticated by the query: a key in the
/// header takes precedence, and the query's is not read.
pub(crate) fn check_key(query: Option<&str>) -> Result<(), ApiError> {
    let mut keys = pieces(query.unwrap_or_default()).filter(|(sent, _)| is_named(sent, API_KEY.name));
    match (keys.next(), keys.next()) {
        (Some(_), Some(_)) => Err(API_KEY.fault("was sent twice")),
        _ => Ok(()),
    }
}

/// Whether a key was sent in the query, under any of its names.
pub(crate) fn holds_key(query: Option<&str>) -> bool {
    pieces(query.unwrap_or_default()).any(|(sent, _)| is_any_key(sent))
}

/// The query without the key and without some other parameters, as its pieces were sent.
pub(crate) fn pieces_without<'q>(query: &'q str, names: &[&str]) -> impl Iterator<Item = &'q str> {
    let unwanted = move |piece: &str| {
        let (sent, _) = split(piece);
        names.iter().any(|name| is_named(sent, name)) || is_any_key(sent)
    };
    query.split('&').filter(move |piece| !piece.is_empty() && !unwanted(piece))
}

fn pieces(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|piece| !piece.is_empty()).map(split)
}

fn split(piece: &str) -> (&str, &str) {
    piece.split_once('=').unwrap_or((piece, ""))
}

fn is_named(sent: &str, name: &str) -> bool {
    sent == name || (sent.contains('%') && percent::decode(sent, Plus::Space).is_some_and(|sent| sent == name))
}

fn is_any_key(sent: &str) -> bool {
    is_named(sent, API_KEY.name) || is_named(sent, API_KEY_V4)
}

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct Params<'q> {
    known: &'static [Parameter],
    values: [Option<Cow<'q, str>>; PARAMETERS_MAX],
}

impl<'q> Params<'q> {
    /// Reads a query that may contain only `known` parameters and the key, whose value is left to authentication.
    pub(crate) fn read(query: Option<&'q str>, known: &'static [Parameter]) -> Result<Self, ApiError> {
        debug_assert!(known.len() <= PARAMETERS_MAX);
        let mut params = Params { known, values: Default::default() };
        for (sent, value) in pieces(query.unwrap_or_default()) {
            let name = percent::decode(sent, Plus::Space).ok_or_else(|| badly_encoded_name(sent))?;
            let (parameter, slot) = match known.iter().position(|parameter| parameter.name == name) {
                Some(at) => (&known[at], &mut params.values[at]),
                None if name == API_KEY.name => continue,
                None => return Err(unknown(&name, known)),
            };
            if slot.is_some() {
                return Err(parameter.fault("was sent twice"));
            }
            let value = percent::decode(value, Plus::Space).ok_or_else(|| parameter.fault(BADLY_ENCODED))?;
            if value.is_empty() {
                return Err(parameter.fault("is empty"));
            }
            *slot = Some(value);
        }
        Ok(params)
    }

    /// Reads a query as The Odds API does: what is not `known` is ignored and an empty value is as good as none. Lists
    /// that are repeated are joined, as clients in Go send them; of any other repeated parameter the last counts.
    pub(crate) fn read_leniently(query: Option<&'q str>, known: &'static [Parameter]) -> Result<Self, ApiError> {
        debug_assert!(known.len() <= PARAMETERS_MAX);
        let mut params = Params { known, values: Default::default() };
        for (sent, value) in pieces(query.unwrap_or_default()) {
            let Some(at) = known.iter().position(|parameter| is_named(sent, parameter.name)) else { continue };
            let value = percent::decode(value, Plus::Space).ok_or_else(|| known[at].fault(BADLY_ENCODED))?;
            let slot = &mut params.values[at];
            match slot {
                Some(list) if known[at].is_list => {
                    if !value.is_empty() {
                        list.to_mut().extend([",", &value]);
                    }
                }
                _ => *slot = Some(value).filter(|value| !value.is_empty()),
            }
        }
        Ok(params)
    }

    /// What was sent for a parameter.
    pub(crate) fn get(&self, parameter: &'static Parameter) -> Option<&str> {
        let at = self.known.iter().position(|known| known.name == parameter.name)?;
        self.values.get(at)?.as_deref()
    }

    /// What was sent for a parameter, understood. `None` from `parse` says that it takes no such value.
    pub(crate) fn parse<T>(
        &self,
        parameter: &'static Parameter,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(parameter) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| parameter.refuse(text))
    }
}

impl Parameter {
    /// The value cannot be taken.
    pub(crate) fn refuse(&self, value: &str) -> ApiError {
        let (name, takes) = (self.name, self.takes);
        ApiError::invalid_parameter(name, format!("`{name}` takes {takes}, not `{}`.", shortened(value)))
    }

    /// Something is wrong with how the parameter was sent.
    pub(crate) fn fault(&self, fault: &str) -> ApiError {
        let (name, takes) = (self.name, self.takes);
        ApiError::invalid_parameter(name, format!("`{name}` {fault}. It takes {takes}."))
    }
}

fn badly_encoded_name(sent: &str) -> ApiError {
    let sent = shortened(sent).to_owned();
    let message = format!("The parameter name `{sent}` is not UTF-8 in percent-encoding.");
    ApiError::invalid_parameter(sent, message)
}

fn unknown(name: &str, known: &[Parameter]) -> ApiError {
    let name = shortened(name).to_owned();
    let known_names = known.iter().chain([&API_KEY]).map(|parameter| parameter.name);
    let advice = match nearest(&name, known_names) {
        Some(known) => format!("Did you mean `{known}`?"),
        None if known.is_empty() => "It takes none.".to_owned(),
        None => {
            let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
            format!("It takes {}.", names.join(", "))
        }
    };
    let message = format!("This endpoint has no parameter `{name}`. {advice}");
    ApiError::invalid_parameter(name, message)
}

/// What of a client's text is repeated to it.
fn shortened(text: &str) -> &str {
    const SHOWN_MAX: usize = 40;
    if may_hold_key(text) {
        return "a key";
    }
    text.char_indices().nth(SHOWN_MAX).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: Parameter = Parameter::new("odds_format", "american, decimal or fractional");
    const LIMIT: Parameter = Parameter::new("limit", "an integer from 1 to 500");
    const KNOWN: &[Parameter] = &[FORMAT, LIMIT];

    #[test]
    fn reads_decoded_values_without_copying_plain_ones() {
        let params = Params::read(Some("&odds_format=dec+imal&&l%69mit=%C3%A9&api_key=x"), KNOWN).unwrap();
        assert_eq!(params.get(&FORMAT), Some("dec imal"));
        assert_eq!(params.get(&LIMIT), Some("é"));
        let params = Params::read(Some("limit=5"), KNOWN).unwrap();
        assert!(matches!(params.values[1], Some(Cow::Borrowed("5"))));
        assert_eq!(params.get(&FORMAT), None);
        assert!(Params::read(None, &[]).is_ok());
    }

    #[test]
    fn a_lenient_reading_passes_over_what_it_does_not_know() {
        let read = |query: &'static str| Params::read_leniently(Some(query), KNOWN);
        let params = read("limit=1&page=2&%zz=%zz&limit=%32&odds_format=").unwrap();
        assert_eq!((params.get(&LIMIT), params.get(&FORMAT)), (Some("2"), None));
        assert_eq!(read("limit=1&limit=").unwrap().get(&LIMIT), None);
        assert_eq!(read("limit=%FF").unwrap_err().param.as_deref(), Some("limit"));
    }

    #[test]
    fn a_lenient_reading_joins_repeated_lists() {
        const REGIONS: Parameter = Parameter::list("regions", "regions");
        let read = |query: &'static str| {
            Params::read_leniently(Some(query), &[REGIONS]).unwrap().get(&REGIONS).map(str::to_owned)
        };
        assert_eq!(read("regions=us&regions=uk").as_deref(), Some("us,uk"));
        assert_eq!(read("regions=&regions=us&regions=&r%65gions=uk,eu").as_deref(), Some("us,uk,eu"));
        assert_eq!(read("regions=&regions="), None);
    }

    #[test]
    fn every_mistake_is_told() {
        for (query, param, message) in [
            ("limit=", "limit", "`limit` is empty. It takes an integer from 1 to 500."),
            ("limit", "limit", "`limit` is empty. It takes an integer from 1 to 500."),
            ("limit=1&limit=1", "limit", "`limit` was sent twice. It takes an integer from 1 to 500."),
            (
                "limit=%FF",
                "limit",
                "`limit` is not UTF-8 in percent-encoding (a plain % is written %25). It takes an integer from 1 to 500.",
            ),
            ("%zz=1", "%zz", "The parameter name `%zz` is not UTF-8 in percent-encoding."),
            (
                "odd_format=decimal",
                "odd_format",
                "This endpoint has no parameter `odd_format`. Did you mean `odds_format`?",
            ),
            (
                "oddsFormat=decimal",
                "oddsFormat",
                "This endpoint has no parameter `oddsFormat`. Did you mean `odds_format`?",
            ),
            ("apiKey=x", "apiKey", "This endpoint has no parameter `apiKey`. Did you mean `api_key`?"),
            ("page=2", "page", "This endpoint has no parameter `page`. It takes odds_format, limit."),
        ] {
            let error = Params::read(Some(query), KNOWN).unwrap_err();
            assert_eq!((error.param.as_deref(), &*error.message), (Some(param), message), "{query}");
        }
        let error = Params::read(Some("a=1"), &[]).unwrap_err();
        assert_eq!(error.message, "This endpoint has no parameter `a`. It takes none.");
    }

    #[test]
    fn finds_the_key_and_leaves_it_out_of_links() {
        let v1 = |query| api_key(Some(query), Version::V1);
        assert_eq!(v1("limit=1&api_key=a%2Bb").as_deref(), Some("a+b"));
        assert_eq!(v1("api%5Fkey=x").as_deref(), Some("x"));
        assert_eq!(v1("api_key=%FF").as_deref(), Some(""));
        assert_eq!(v1("limit=1"), None);
        assert_eq!(v1("apiKey=x"), None);
        for query in ["apiKey=x", "a=1&api%4Bey=x", "api_key=y&apiKey=x"] {
            assert_eq!(api_key(Some(query), Version::V4).as_deref(), Some("x"), "{query}");
        }
        let sent = "a=1&api_key=s&api%5fkey=s&apiKey=s&api%4Bey=s&after=x&&b=%20";
        let left: Vec<_> = pieces_without(sent, &["after"]).collect();
        assert_eq!(left, ["a=1", "b=%20"]);
    }

    #[test]
    fn only_a_repeated_key_is_an_error() {
        for query in ["", "a=1", "api_key=", "api_key=%FF&limit=1"] {
            assert_eq!(check_key(Some(query)), Ok(()), "{query}");
        }
        let error = check_key(Some("api_key=a&api%5Fkey=b")).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("api_key"));
        assert_eq!(
            error.message,
            "`api_key` was sent twice. It takes an API key; better send it in the X-API-Key header."
        );
    }

    #[test]
    fn refused_values_are_shown_in_part() {
        let error = LIMIT.refuse(&"é".repeat(100));
        assert_eq!(error.message, format!("`limit` takes an integer from 1 to 500, not `{}`.", "é".repeat(40)));
    }

    proptest! {
        #[test]
        fn no_query_panics(query in "\\PC{0,80}", near in "[a-z_=&%+0-9]{0,80}") {
            let _ = (Params::read(Some(&query), KNOWN), api_key(Some(&query), Version::V4));
            let _ = (Params::read(Some(&near), KNOWN), pieces_without(&near, &["after"]).count());
            let _ = (Params::read_leniently(Some(&query), KNOWN), Params::read_leniently(Some(&near), KNOWN));
        }
    }
}
