//! Why a feed line, or one outcome in it, was rejected.

use std::fmt;

use super::price::PriceError;

/// A reason for rejecting input from a feed. Each is counted and reported under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    BadJson,
    LineTooLong,
    UnknownType,
    MissingField,
    BadField,
    BadTime,
    UnknownSport,
    UnknownMarket,
    MarketNotOfSport,
    UnknownBookmaker,
    UnknownEvent,
    EventOver,
    TooManyBookmakers,
    TooManyCompetitions,
    TooManyMarkets,
    Late,
    /// Dated further ahead of this server's clock than the tolerance allows.
    InFuture,
    /// The feeder has used up its quota of bookmakers or events.
    FeederQuota,
    /// A feeder may remove only events that it announced itself.
    NotOwnEvent,
    /// A compressed stream that inflates to more than the limit, or a strict one that is too long.
    StreamTooLarge,
    /// A file in the drop directory that cannot be read safely.
    UnsafeFile,
    /// A line of history that is dated before the one before it.
    OutOfOrder,
    /// History of a time for which there is a log of what was published.
    AfterOwnHistory,
    /// History that is older than what is kept.
    BeforeRetention,
    PriceNotANumber,
    PriceNotWhole,
    PriceInsideHundred,
    PriceBadFraction,
    PriceTooShort,
    PriceTooLong,
}

impl Reason {
    pub const COUNT: usize = 30;

    pub const ALL: [Reason; Reason::COUNT] = [
        Reason::BadJson,
        Reason::LineTooLong,
        Reason::UnknownType,
        Reason::MissingField,
        Reason::BadField,
        Reason::BadTime,
        Reason::UnknownSport,
        Reason::UnknownMarket,
        Reason::MarketNotOfSport,
        Reason::UnknownBookmaker,
        Reason::UnknownEvent,
        Reason::EventOver,
        Reason::TooManyBookmakers,
        Reason::TooManyCompetitions,
        Reason::TooManyMarkets,
        Reason::Late,
        Reason::InFuture,
        Reason::FeederQuota,
        Reason::NotOwnEvent,
        Reason::StreamTooLarge,
        Reason::UnsafeFile,
        Reason::OutOfOrder,
        Reason::AfterOwnHistory,
        Reason::BeforeRetention,
        Reason::PriceNotANumber,
        Reason::PriceNotWhole,
        Reason::PriceInsideHundred,
        Reason::PriceBadFraction,
        Reason::PriceTooShort,
        Reason::PriceTooLong,
    ];

    pub const fn key(self) -> &'static str {
        match self {
            Reason::BadJson => "bad_json",
            Reason::LineTooLong => "line_too_long",
            Reason::UnknownType => "unknown_type",
            Reason::MissingField => "missing_field",
            Reason::BadField => "bad_field",
            Reason::BadTime => "bad_time",
            Reason::UnknownSport => "unknown_sport",
            Reason::UnknownMarket => "unknown_market",
            Reason::MarketNotOfSport => "market_not_of_sport",
            Reason::UnknownBookmaker => "unknown_bookmaker",
            Reason::UnknownEvent => "unknown_event",
            Reason::EventOver => "event_over",
            Reason::TooManyBookmakers => "too_many_bookmakers",
            Reason::TooManyCompetitions => "too_many_competitions",
            Reason::TooManyMarkets => "too_many_markets",
            Reason::Late => "late",
            Reason::InFuture => "in_future",
            Reason::FeederQuota => "feeder_quota",
            Reason::NotOwnEvent => "not_own_event",
            Reason::StreamTooLarge => "stream_too_large",
            Reason::UnsafeFile => "unsafe_file",
            Reason::OutOfOrder => "out_of_order",
            Reason::AfterOwnHistory => "after_own_history",
            Reason::BeforeRetention => "before_retention",
            Reason::PriceNotANumber => "price_not_a_number",
            Reason::PriceNotWhole => "price_not_whole",
            Reason::PriceInsideHundred => "price_inside_hundred",
            Reason::PriceBadFraction => "price_bad_fraction",
            Reason::PriceTooShort => "price_too_short",
            Reason::PriceTooLong => "price_too_long",
        }
    }

    /// Why the writer rejects a message that is valid by itself, and what to do about it.
    pub const fn description(self) -> &'static str {
        match self {
            Reason::UnknownEvent => "no event line has announced this event, or it was removed",
            Reason::UnknownBookmaker => "the bookmaker is not declared: send a bookmaker line first",
            Reason::EventOver => "the event is over: it takes no prices",
            Reason::InFuture => "its time is more than 60 seconds ahead of this server's clock: compare both clocks",
            Reason::MarketNotOfSport => "events of this sport do not have the market",
            Reason::Late => "a newer value is stored",
            Reason::TooManyBookmakers => "there is no room for another bookmaker",
            Reason::TooManyCompetitions => "there is no room for another competition",
            Reason::TooManyMarkets => "there is no room for another market",
            Reason::FeederQuota => {
                "the feeder has added as many bookmakers, events, competitions or markets as it may; `oddsbox feeds` shows its quota"
            }
            Reason::OutOfOrder => {
                "it is dated before the line before it: the history of a sport comes in the order of time"
            }
            Reason::AfterOwnHistory => "the log of this server has what the sport's prices were then",
            Reason::BeforeRetention => "it is older than history is kept: set history.keep to more",
            Reason::NotOwnEvent => "a feeder removes only events that it announced first",
            Reason::BadField => {
                "the winner is neither of the two sides, or the event has a field and so neither points nor a winner"
            }
            Reason::MissingField => "the event has two sides: send home_score and away_score",
            _ => "it conflicts with the stored data",
        }
    }
}

impl From<PriceError> for Reason {
    fn from(error: PriceError) -> Self {
        match error {
            PriceError::NotANumber => Reason::PriceNotANumber,
            PriceError::NotWhole => Reason::PriceNotWhole,
            PriceError::InsideHundred => Reason::PriceInsideHundred,
            PriceError::BadFraction => Reason::PriceBadFraction,
            PriceError::TooShort => Reason::PriceTooShort,
            PriceError::TooLong => Reason::PriceTooLong,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
