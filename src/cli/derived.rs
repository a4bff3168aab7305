//! `oddsbox best` and `oddsbox edges`: what follows from the prices of a sport.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::flags;
use super::invocation::Invocation;
use super::output::Output;
use crate::admin::{Access, Command, DerivedKind, DerivedOrder};
use crate::model::World;

/// Show the best price of every outcome
///
/// A line for each outcome: the best price and who has it, the next best one, and for each bet the hold that is left if all best
/// prices are taken. Stale sources are left out. Safe on a running server: it only reads.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox best soccer
  oddsbox best american_football --market spread,total_points --sort hold
  oddsbox best mma --regions us,uk --json")]
pub(super) struct BestArgs {
    #[command(flatten)]
    prices: PricesArgs,
    /// Order: the lowest hold first [default: by start]
    #[arg(long, value_name = "ORDER", value_parser = ["hold"])]
    sort: Option<String>,
}

/// Show prices that are worth more than they cost
///
/// By expected value against fair prices, or as an arbitrage over all outcomes of a bet; the largest edge first. Stale sources are
/// left out. Safe on a running server: it only reads.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox edges soccer
  oddsbox edges tennis --kind arbitrage --min 0
  oddsbox edges basketball --from pinnacle --regions us --json")]
pub(super) struct EdgesArgs {
    #[command(flatten)]
    prices: PricesArgs,
    /// Which edges
    #[arg(long, default_value = "ev", value_parser = ["ev", "arbitrage"])]
    kind: String,
    /// The least edge, as a fraction
    #[arg(long, value_name = "FRACTION", default_value = "0.01")]
    min: String,
    /// Bookmaker whose prices are taken for fair [default: the consensus]
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// How the margin is taken out of them
    #[arg(long, default_value = "power", value_parser = ["power", "shin", "multiplicative", "additive"])]
    method: String,
}

/// Which prices.
#[derive(Debug, Args)]
struct PricesArgs {
    /// The key of a sport
    #[arg(value_name = "SPORT", value_parser = flags::sport)]
    sport: String,
    /// World of the prices
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Markets separated by commas, or all [default: the featured ones]
    #[arg(long, value_name = "KEYS")]
    market: Option<String>,
    /// Only prices of this bookmaker
    #[arg(long, value_name = "KEY")]
    bookmaker: Option<String>,
    /// Only bookmakers of these regions, separated by commas [default: all]
    #[arg(long, value_name = "REGIONS")]
    regions: Option<String>,
    /// Format of the prices
    #[arg(long, value_name = "FORMAT", default_value = "american", value_parser = ["american", "decimal", "fractional"])]
    odds_format: String,
    /// The most rows, 500 at most
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=500))]
    limit: u64,
}

impl PricesArgs {
    fn ask(self, what: DerivedKind, invocation: &Invocation) -> anyhow::Result<Vec<Value>> {
        let PricesArgs { sport, world, market, bookmaker, regions, odds_format, limit } = self;
        let order = DerivedOrder { world: world.into(), sport, what, market, bookmaker, regions, odds_format, limit };
        invocation.ask(Access::Existing, Command::Derived(order))
    }
}

impl BestArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let rows = self.prices.ask(DerivedKind::Best { by_hold: self.sort.is_some() }, invocation)?;
        invocation.output.answer(&rows, |output| best_table(output, &rows))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl EdgesArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let EdgesArgs { prices, kind, min, from, method } = self;
        let what = match &*kind {
            "arbitrage" if from.is_some() => anyhow::bail!("--from is for --kind ev: an arbitrage has no reference"),
            "arbitrage" => DerivedKind::Arbitrage { min },
            _ => DerivedKind::Ev { from, method, min },
        };
        let rows = prices.ask(what, invocation)?;
        invocation.output.answer(&rows, |output| edges_table(output, &rows))?;
        Ok(ExitCode::SUCCESS)
    }
}

const BEST: [&str; 8] = ["EVENT", "MARKET", "OUTCOME", "BEST", "BOOKMAKER", "NEXT", "HOLD", "AGE"];
const EDGES: [&str; 9] = ["EDGE", "EVENT", "MARKET", "OUTCOME", "PRICE", "BOOKMAKER", "STAKE", "AGE", "REFERENCE"];
const NOTHING: &str = "Nothing: no price that is not stale matches.\n";

fn best_table(output: Output, rows: &[Value]) -> String {
    if rows.is_empty() {
        return NOTHING.to_owned();
    }
    let lines: Vec<Vec<String>> = rows
        .iter()
        .flat_map(|row| {
            items(&row["outcomes"]).map(move |outcome| {
                let next = match &outcome["next"] {
                    Value::Null => "-".to_owned(),
                    next => format!("{} {}", text(&next["price"]), text(&next["bookmaker"])),
                };
                let place = [event(row), text(&row["market"]), named(outcome, row)];
                let offer = [text(&outcome["price"]), text(&outcome["bookmaker"]), next];
                let about = [percent(&row["hold"]), age(&row["age_s"])];
                place.into_iter().chain(offer).chain(about).collect()
            })
        })
        .collect();
    output.table(&BEST, &lines)
}

fn edges_table(output: Output, rows: &[Value]) -> String {
    if rows.is_empty() {
        return NOTHING.to_owned();
    }
    let lines: Vec<Vec<String>> = rows
        .iter()
        .flat_map(|row| {
            items(&row["legs"]).map(move |leg| {
                let place = [percent(&row["edge"]), event(row), text(&row["market"]), named(leg, row)];
                let bet = [text(&leg["price"]), text(&leg["bookmaker"]), percent(&leg["stake"]), age(&leg["age_s"])];
                let reference = match &row["reference"] {
                    Value::Null => "-".to_owned(),
                    reference => format!("{} ({})", text(reference), text(&row["method"])),
                };
                place.into_iter().chain(bet).chain([reference]).collect()
            })
        })
        .collect();
    output.table(&EDGES, &lines)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The sides of an event, or its title.
fn event(row: &Value) -> String {
    let event = &row["event"];
    match (&event["title"], &event["home_team"], &event["away_team"]) {
        (Value::String(title), ..) => title.clone(),
        (_, home, away) => format!("{} v {}", text(home), text(away)),
    }
}

/// An outcome with its description and its point: `Over 44.5`, `A. Player Over 20.5`.
fn named(outcome: &Value, row: &Value) -> String {
    let parts = [&row["description"], &outcome["name"], &outcome["point"]];
    parts.into_iter().filter(|part| !part.is_null()).map(text).collect::<Vec<_>>().join(" ")
}

/// A number, or a text without its quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn percent(fraction: &Value) -> String {
    fraction.as_f64().map_or_else(|| "-".to_owned(), |fraction| format!("{:.2}%", fraction * 100.0))
}

fn age(seconds: &Value) -> String {
    seconds.as_u64().map_or_else(|| "-".to_owned(), flags::shown_seconds)
}
