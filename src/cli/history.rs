//! `oddsbox history`: what the prices of an event were.

mod forget;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::flags;
use super::invocation::Invocation;
use super::output::{self, Output, pairs};
use crate::admin::{Access, Command, HistoryAnswer, HistoryOrder, LineAnswer, OutcomeAnswer, PointAnswer};
use crate::model::{OddsFormat, Price, World};

/// Show what the prices of an event were
///
/// A row for each bookmaker in one market: the opening and the closing price of one outcome, how often it changed, and its
/// course from the first price to the last one. Safe on a running server: it only reads.
#[derive(Debug, Args)]
#[command(
    subcommand_negates_reqs = true,
    after_long_help = "\
Examples:
  oddsbox history 5ccad57631f7026f5c1c45740d28a7a2
  oddsbox history EVENT --market total_points --outcome Over
  oddsbox history EVENT --bookmaker pinnacle --csv > line.csv
  oddsbox history forget EVENT"
)]
pub(super) struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// The id of the event
    #[arg(value_name = "EVENT", required = true)]
    event: Option<String>,
    /// World of the event
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Market [default: the first that the event has]
    #[arg(long, value_name = "KEY")]
    market: Option<String>,
    /// Only this bookmaker
    #[arg(long, value_name = "KEY")]
    bookmaker: Option<String>,
    /// Outcome to show [default: the first of the market]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["csv", "json"])]
    outcome: Option<String>,
    /// Only outcomes of this description, such as a player
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["csv", "json"])]
    description: Option<String>,
    /// Only outcomes with this point
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, conflicts_with_all = ["csv", "json"])]
    point: Option<f64>,
    /// Format of the prices
    #[arg(long, value_name = "FORMAT", default_value = "american", value_parser = ["american", "decimal", "fractional"])]
    odds_format: String,
    /// Print every change as CSV, a line for each outcome
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    Forget(forget::ForgetArgs),
}

impl HistoryArgs {
    /// What a subcommand does not take in front of it.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        let HistoryArgs { command, event, market, bookmaker, outcome, description, point, csv, .. } = self;
        let texts = [event, market, bookmaker, outcome, description];
        let has_option = texts.into_iter().any(Option::is_some) || point.is_some() || *csv;
        (command.is_some() && has_option).then_some("`history forget` takes its options after its name")
    }

    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let HistoryArgs { command, event, world, market, bookmaker, outcome, description, point, odds_format, csv } =
            self;
        let event = match (command, event) {
            (Some(HistoryCommand::Forget(forget)), _) => return forget.run(invocation),
            (None, event) => event.unwrap_or_default(),
        };
        let order = HistoryOrder { world: world.into(), event, market, bookmaker, odds_format: odds_format.clone() };
        let history: HistoryAnswer = invocation.ask(Access::Existing, Command::History(order))?;
        if csv {
            output::text(&as_csv(&history))?;
            return Ok(ExitCode::SUCCESS);
        }
        let format = OddsFormat::parse(&odds_format).unwrap_or(OddsFormat::American);
        let wanted = Wanted { name: outcome, description, point }.or_first_of(&history);
        if !invocation.output.json && wanted.is_ambiguous(&history) {
            anyhow::bail!(
                "several outcomes are meant: name one with --outcome, --description and --point, or use --csv"
            );
        }
        invocation.output.answer(&history, |output| shown(output, &history, &wanted, format))?;
        Ok(ExitCode::SUCCESS)
    }
}

const HEADER: [&str; 6] = ["BOOKMAKER", "OPENING", "LAST", "CLOSING", "CHANGES", "COURSE"];

/// The outcome that is shown.
#[derive(Debug)]
struct Wanted {
    name: Option<String>,
    description: Option<String>,
    point: Option<f64>,
}

impl Wanted {
    /// Without a name, that of the first outcome which the rest fits.
    fn or_first_of(self, history: &HistoryAnswer) -> Self {
        let mut all = history.lines.iter().flat_map(|line| &line.points).flat_map(|point| &point.outcomes);
        let first = all.find(|outcome| self.accepts(outcome)).map(|outcome| outcome.name.clone());
        Wanted { name: self.name.clone().or(first), ..self }
    }

    fn accepts(&self, outcome: &OutcomeAnswer) -> bool {
        let point = outcome.point.as_ref().and_then(serde_json::Number::as_f64);
        self.name.as_ref().is_none_or(|name| *name == outcome.name)
            && self.description.as_ref().is_none_or(|text| outcome.description.as_ref() == Some(text))
            && self.point.is_none_or(|wanted| point == Some(wanted))
    }

    /// Whether a bookmaker had several such outcomes at a time, as in alternate lines.
    fn is_ambiguous(&self, history: &HistoryAnswer) -> bool {
        let mut points = history.lines.iter().flat_map(|line| &line.points);
        points.any(|point| point.outcomes.iter().filter(|outcome| self.accepts(outcome)).count() > 1)
    }

    fn of<'p>(&self, point: &'p PointAnswer) -> Option<&'p OutcomeAnswer> {
        point.outcomes.iter().find(|outcome| self.accepts(outcome))
    }
}

fn shown(output: Output, history: &HistoryAnswer, wanted: &Wanted, format: OddsFormat) -> String {
    let mut rows = vec![
        ("event", format!("{} ({}, {})", history.name, history.competition, history.sport_key)),
        ("start", format!("{}, {}", history.commence_time, history.status)),
        ("markets", history.markets.join(", ")),
    ];
    if let Some(market) = &history.market {
        rows.push(("shown", format!("{market}, {}, in {format} odds", wanted.name.as_deref().unwrap_or_default())));
    }
    if history.lines.is_empty() {
        return format!("{}\nNo price of it is in the history.\n", pairs(&rows[..2]));
    }
    let span = Span::of(history);
    let lines: Vec<Vec<String>> = history.lines.iter().map(|line| row(line, wanted, format, span)).collect();
    format!("{}\n{}", pairs(&rows), output.table(&HEADER, &lines))
}

fn row(line: &LineAnswer, wanted: &Wanted, format: OddsFormat, span: Span<'_>) -> Vec<String> {
    let text = |point: Option<&PointAnswer>| {
        point.and_then(|point| wanted.of(point)).map_or("-".to_owned(), |found| plain(&found.price))
    };
    let closing = match (&line.closing, &line.closing_reason) {
        (Some(closing), Some(reason)) => format!("{} ({reason})", text(Some(closing))),
        (None, Some(reason)) => reason.clone(),
        _ => "-".to_owned(),
    };
    let mut courses: Vec<Option<&OutcomeAnswer>> = line.points.iter().map(|point| wanted.of(point)).collect();
    courses.dedup();
    let changes = courses.len().saturating_sub(1).to_string();
    let course = course(line, wanted, format, span);
    vec![line.bookmaker.clone(), text(Some(&line.opening)), text(line.points.last()), closing, changes, course]
}

/// A number or a text without its quotes.
fn plain(price: &serde_json::Value) -> String {
    price.as_str().map_or_else(|| price.to_string(), str::to_owned)
}

/// From the first to the last change of all lines, as texts: times of this form are ordered as their texts are.
#[derive(Clone, Copy, Debug)]
struct Span<'h> {
    first: &'h str,
    last: &'h str,
}

impl<'h> Span<'h> {
    fn of(history: &'h HistoryAnswer) -> Self {
        let times = || history.lines.iter().flat_map(|line| &line.points).map(|point| point.at.as_str());
        Span { first: times().min().unwrap_or_default(), last: times().max().unwrap_or_default() }
    }

    /// The end of each of so many parts.
    fn ends(self, parts: i64) -> Vec<i64> {
        let (first, last) = (seconds(self.first), seconds(self.last));
        (1..=parts).map(|part| first + (last - first) * part / parts).collect()
    }
}

fn seconds(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}

const PARTS: i64 = 24;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The chance that the price gives the outcome, over the time of all lines; a dot where there is no price.
fn course(line: &LineAnswer, wanted: &Wanted, format: OddsFormat, span: Span<'_>) -> String {
    let chance = |point: &PointAnswer| {
        let price = Price::parse(&plain(&wanted.of(point)?.price), format).ok()?;
        Some(price.chance())
    };
    let points: Vec<(i64, Option<f64>)> = line.points.iter().map(|point| (seconds(&point.at), chance(point))).collect();
    let at_end = |end: i64| {
        let before = points.partition_point(|(at, _)| *at <= end);
        before.checked_sub(1).and_then(|last| points[last].1)
    };
    let values: Vec<Option<f64>> = span.ends(PARTS).into_iter().map(at_end).collect();
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let bar = |value: f64| {
        let height = if high > low { (value - low) / (high - low) } else { 0.5 };
        BARS.iter().rev().enumerate().find(|(at, _)| height * 8.0 >= f64::from(7 - u8::try_from(*at).unwrap_or(7)))
    };
    values.into_iter().map(|value| value.and_then(bar).map_or('·', |(_, bar)| *bar)).collect()
}

/// A line for each outcome of each change; an empty name and price where the market closed.
fn as_csv(history: &HistoryAnswer) -> String {
    let mut out = String::from("event_id,bookmaker,market,at,name,description,point,price\r\n");
    let market = history.market.as_deref().unwrap_or_default();
    for line in &history.lines {
        for point in &line.points {
            let mut put = |name: &str, description: &str, line_point: &str, price: &str| {
                let fields =
                    [&history.event_id, &line.bookmaker, market, &point.at, name, description, line_point, price];
                out.push_str(&fields.map(csv_field).join(","));
                out.push_str("\r\n");
            };
            if point.outcomes.is_empty() {
                put("", "", "", "");
            }
            for outcome in &point.outcomes {
                let line_point = outcome.point.as_ref().map(ToString::to_string).unwrap_or_default();
                let description = outcome.description.as_deref().unwrap_or_default();
                put(&outcome.name, description, &line_point, &plain(&outcome.price));
            }
        }
    }
    out
}

/// Quoted where it must be (RFC 4180).
fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
