//! How an input is to be taken in, and the query parameters of `/ingest` that say so.

use super::error::IngestError;
use crate::model::{OddsFormat, Region, Regions, World};

/// How a stream of lines is to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    pub world: World,
    /// All of it or, if one line is rejected, nothing.
    pub strict: bool,
}

/// How a saved payload of The Odds API is to be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadOptions {
    pub world: World,
    /// All of it or, if anything is rejected, nothing.
    pub strict: bool,
    /// The sport that it must be of, by our key or one of The Odds API.
    pub sport: Option<String>,
    /// How its prices are quoted; without it the prices must show it.
    pub odds_format: Option<OddsFormat>,
    /// The regions of undeclared bookmakers; without regions they are rejected.
    pub regions: Regions,
}

/// How history is to be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryInput {
    pub options: IngestOptions,
    /// For responses of The Odds API's archive; `None` for lines.
    pub payload: Option<PayloadOptions>,
}

/// What is sent to `/ingest`.
#[derive(Debug, PartialEq, Eq)]
pub enum InputOptions {
    Lines(IngestOptions),
    Payload(PayloadOptions),
    History(HistoryInput),
}

fn bad_parameter(message: impl Into<String>) -> IngestError {
    IngestError::BadParameter(message.into())
}

impl IngestOptions {
    /// Feed lines into a world, as they come.
    pub(super) const fn lenient(world: World) -> Self {
        IngestOptions { world, strict: false }
    }

    pub(super) fn parse(query: &str) -> Result<Self, IngestError> {
        let mut options = IngestOptions::lenient(World::Live);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "world" => {
                    options.world = World::parse(value).ok_or_else(|| bad_parameter("world takes live or sandbox"))?;
                }
                "strict" => {
                    options.strict = value.parse().map_err(|_| bad_parameter("strict takes true or false"))?;
                }
                _ => return Err(bad_parameter(format!("there is no parameter {name:?}: world, strict"))),
            }
        }
        Ok(options)
    }
}

impl InputOptions {
    pub fn parse(query: &str) -> Result<Self, IngestError> {
        let (own, other): (Vec<&str>, Vec<&str>) = query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| {
            ["history", "format", "sport", "odds_format", "regions"]
                .contains(&pair.split_once('=').map_or(*pair, |(name, _)| name))
        });
        let IngestOptions { world, strict } = IngestOptions::parse(&other.join("&"))?;
        let mut options = PayloadOptions { world, strict, sport: None, odds_format: None, regions: Regions::NONE };
        let (mut is_payload, mut is_history) = (false, false);
        for pair in &own {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let takes = |what: &str| bad_parameter(format!("{name} takes {what}"));
            match name {
                "history" => is_history = value.parse().map_err(|_| takes("true or false"))?,
                "format" if value == "the-odds-api" => is_payload = true,
                "format" => return Err(takes("the-odds-api, or is left out for feed lines")),
                "sport" => options.sport = Some(value.to_owned()),
                "odds_format" => {
                    let format = OddsFormat::parse(value).ok_or_else(|| takes("american, decimal or fractional"))?;
                    options.odds_format = Some(format);
                }
                _ => {
                    let regions: Option<Regions> = value.split(',').map(Region::parse).collect();
                    options.regions =
                        regions.ok_or_else(|| takes("us, us2, us_dfs, us_ex, uk, eu, fr, se, au, between commas"))?;
                }
            }
        }
        let is_of_payload = |pair: &&&str| !pair.starts_with("history=");
        match own.iter().find(is_of_payload) {
            found if is_history && (is_payload || found.is_none()) => Ok(InputOptions::History(HistoryInput {
                options: IngestOptions { world, strict },
                payload: is_payload.then_some(options),
            })),
            Some(_) if is_payload => Ok(InputOptions::Payload(options)),
            Some(pair) => Err(bad_parameter(format!("{pair} is for format=the-odds-api only"))),
            None => Ok(InputOptions::Lines(IngestOptions { world, strict })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::IngestErrorKind;

    #[test]
    fn the_parameters_of_a_payload_are_checked() {
        let lines = InputOptions::Lines(IngestOptions { world: World::Live, strict: false });
        assert_eq!(InputOptions::parse("").unwrap(), lines);
        let full = "format=the-odds-api&world=sandbox&sport=mma&odds_format=decimal&regions=us,uk&strict=true";
        let options = PayloadOptions {
            world: World::Sandbox,
            strict: true,
            sport: Some("mma".to_owned()),
            odds_format: Some(OddsFormat::Decimal),
            regions: Regions::only(Region::Us).with(Region::Uk),
        };
        assert_eq!(InputOptions::parse(full).unwrap(), InputOptions::Payload(options));
        for wrong in ["format=csv", "sport=mma", "format=the-odds-api&regions=mars", "format=the-odds-api&sprot=mma"] {
            assert_eq!(InputOptions::parse(wrong).unwrap_err().kind(), IngestErrorKind::BadRequest, "{wrong}");
        }
    }

    #[test]
    fn the_parameters_of_ingest_are_checked() {
        let default = IngestOptions { world: World::Live, strict: false };
        assert_eq!(IngestOptions::parse("").unwrap(), default);
        let strict = IngestOptions { world: World::Sandbox, strict: true };
        assert_eq!(IngestOptions::parse("world=sandbox&strict=true").unwrap(), strict);
        for wrong in ["world=mars", "strict=1", "wrold=live", "world"] {
            assert_eq!(IngestOptions::parse(wrong).unwrap_err().kind(), IngestErrorKind::BadRequest, "{wrong}");
        }
    }
}
