//! The domain types: sports, bookmakers, events, prices and scores. Plain values that uphold their invariants; no I/O
//! and no serialisation.

pub mod bookmaker;
pub mod budget;
pub mod catalogue;
pub mod competition;
pub mod derived;
pub mod event;
pub mod line;
pub mod maintenance;
pub mod market;
pub mod news;
pub(crate) mod number;
pub mod odds;
pub mod position;
pub mod price;
pub mod quota;
pub mod region;
pub mod rejection;
pub mod score;
pub mod source;
pub mod sport;
pub(crate) mod text;
pub mod time;
pub mod v4;
pub mod world;

pub use bookmaker::{BookId, Bookmaker, Bookmakers};
pub use budget::{FeedBudget, ReportedCredits};
pub use catalogue::{Catalogue, CatalogueError, UnknownSport};
pub use competition::{Competition, Competitions, SeenCompetition};
pub use event::{Contest, Event, EventId, EventOwner, EventStatus};
pub use line::{ClosingReason, EventLines, Line, LinePoint, PricedAt, Start};
pub use maintenance::Maintenance;
pub use market::{Market, MarketFamilies, MarketFilter, MarketKey, MarketTraits, Settlement};
pub use news::{ClosedNews, CompetitionNews, EventNews, News, OddsNews, ReadNews, ScoreNews, SourceNews};
pub use odds::{Closed, Outcome, OutcomeName, Point, Record, RecordId};
pub use position::Position;
pub use price::{FairPrice, OddsFormat, Price, PriceError};
pub use quota::{FeederQuota, FeederUse};
pub use region::{Region, Regions};
pub use rejection::Reason;
pub use score::{Period, Score, ScoreStatus};
pub use source::Source;
pub use sport::{Sport, SportId, SportKind, SportSet};
pub use time::Timestamp;
pub use v4::{V4Keys, V4Names};
pub use world::World;
