//! `oddsbox catalogue`: the sports, competitions, markets and bookmakers of a configuration.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;

use super::invocation::Invocation;
use super::output::Output;
use crate::admin::Setup;
use crate::config::catalogue::{self, CatalogueChanges, ChangedKeys};
use crate::model::{Bookmaker, Catalogue, Competition, MarketTraits, Region, Sport, SportKind, V4Keys, V4Names};

/// Show the sports, competitions, markets and bookmakers that the service knows from the start
///
/// The built-in catalogue with the file of the setting catalogue on top, and the sports that only feeds name. Reads the
/// configuration (--config) and the environment of this command, not those of a running server.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox catalogue
  oddsbox catalogue --sport soccer
  oddsbox catalogue --bookmakers --json
  oddsbox catalogue check catalogue.toml")]
pub(super) struct CatalogueArgs {
    #[command(subcommand)]
    command: Option<CatalogueCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct ListArgs {
    /// Show the competitions of a sport
    #[arg(long, value_name = "SPORT")]
    sport: Option<String>,
    /// Show the market families and props
    #[arg(long)]
    markets: bool,
    /// Show the bookmakers
    #[arg(long)]
    bookmakers: bool,
}

#[derive(Debug, Subcommand)]
enum CatalogueCommand {
    Check(CheckCatalogueArgs),
}

/// Check a catalogue file and show what it adds and overrides
///
/// Needs no server and changes nothing. A mistake is reported with its line, as `oddsbox serve` would, and the exit code
/// is 1.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox catalogue check catalogue.toml
  oddsbox catalogue check catalogue.toml --json")]
struct CheckCatalogueArgs {
    /// The file to check
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// The whole catalogue, as `--json` prints it.
#[derive(Debug, Serialize)]
struct CatalogueDocument<'c> {
    sports: Vec<SportRow<'c>>,
    competitions: Vec<CompetitionRow<'c>>,
    market_families: Vec<MarketRow<'c>>,
    props: Vec<MarketRow<'c>>,
    bookmakers: Vec<BookmakerRow<'c>>,
}

#[derive(Debug, Serialize)]
struct SportRow<'c> {
    key: &'c str,
    title: &'c str,
    group: &'c str,
    kind: &'static str,
    /// The number of listed competitions.
    competitions: usize,
    /// What its keys in The Odds API look like.
    v4_key: Option<String>,
}

#[derive(Debug, Serialize)]
struct CompetitionRow<'c> {
    key: &'c str,
    sport: &'c str,
    title: &'c str,
    description: &'c str,
    field: bool,
}

#[derive(Debug, Serialize)]
struct MarketRow<'c> {
    key: &'c str,
    shape: &'static str,
    winners: usize,
}

#[derive(Debug, Serialize)]
struct BookmakerRow<'c> {
    key: &'c str,
    title: &'c str,
    regions: Vec<&'static str>,
}

impl CatalogueArgs {
    /// Why options and a subcommand do not go together.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        let ListArgs { sport, markets, bookmakers } = &self.list;
        let has_list = sport.is_some() || *markets || *bookmakers;
        (self.command.is_some() && has_list).then_some("--sport, --markets and --bookmakers are not for a subcommand")
    }

    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        if let Some(CatalogueCommand::Check(check)) = self.command {
            return check.run(invocation);
        }
        let setup = Setup::of(&invocation.settings()?.read()?)?;
        let (catalogue, output) = (&*setup.catalogue, invocation.output);
        match self.list {
            ListArgs { sport: Some(sport), .. } => {
                let rows = competitions(catalogue, Some(&sport))?;
                output.answer(&rows, |output| competition_table(output, &rows))?;
            }
            ListArgs { markets: true, .. } => {
                let rows: Vec<_> = market_families(catalogue).into_iter().chain(props(catalogue)).collect();
                output.answer(&rows, |output| market_table(output, &rows))?;
            }
            ListArgs { bookmakers: true, .. } => {
                let rows = bookmakers(catalogue);
                output.answer(&rows, |output| bookmaker_table(output, &rows))?;
            }
            ListArgs { .. } => {
                let document = CatalogueDocument {
                    sports: sports(catalogue),
                    competitions: competitions(catalogue, None)?,
                    market_families: market_families(catalogue),
                    props: props(catalogue),
                    bookmakers: bookmakers(catalogue),
                };
                output.answer(&document, |output| sport_table(output, &document.sports))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl CheckCatalogueArgs {
    fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let path = self.file.display();
        let text = std::fs::read_to_string(&self.file);
        let text = text.map_err(|error| anyhow::anyhow!("cannot read the catalogue {path}: {error}"))?;
        let changes = catalogue::changes(&text).map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
        invocation.output.answer(&changes, |_| changes_text(&path.to_string(), &changes))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn changes_text(path: &str, changes: &CatalogueChanges) -> String {
    let base = if changes.replace { "stands alone" } else { "is used on top of the built-in catalogue" };
    let mut text = format!("{path} is valid and {base}.\n");
    let lists = [
        ("sports", &changes.sports),
        ("competitions", &changes.competitions),
        ("market families", &changes.market_families),
        ("props", &changes.props),
        ("bookmakers", &changes.bookmakers),
    ];
    for (name, ChangedKeys { added, overridden }) in lists {
        for (what, keys) in [("adds", added), ("overrides", overridden)] {
            if !keys.is_empty() {
                let _ = writeln!(text, "{what} {} {name}: {}", keys.len(), keys.join(", "));
            }
        }
    }
    text
}

fn sports(catalogue: &Catalogue) -> Vec<SportRow<'_>> {
    let v4_key = |names: &V4Names| match &names.keys {
        V4Keys::Whole { key, .. } => key.to_string(),
        V4Keys::ByCompetition { key, .. } => key.fill("*"),
    };
    let rows = catalogue.sports().map(|(id, Sport { key, title, group, kind, v4, .. })| SportRow {
        key,
        title,
        group,
        kind: match kind {
            SportKind::HeadToHead => "head_to_head",
            SportKind::Fight => "fight",
            SportKind::Tournament => "tournament",
        },
        competitions: catalogue.competitions_of(id).count(),
        v4_key: v4.as_ref().map(v4_key),
    });
    rows.collect()
}

/// Those of one sport, by any of its keys, or all.
fn competitions<'c>(catalogue: &'c Catalogue, sport: Option<&str>) -> anyhow::Result<Vec<CompetitionRow<'c>>> {
    let only = sport.map(|key| catalogue.find_any(key)).transpose()?;
    let ids = catalogue.sport_ids().filter(|id| only.is_none_or(|only| only == *id));
    let rows = ids.flat_map(|id| {
        catalogue.competitions_of(id).map(move |listed| {
            let Competition { key, title, description, has_field } = listed;
            CompetitionRow { key, sport: &catalogue[id].key, title, description, field: *has_field }
        })
    });
    Ok(rows.collect())
}

fn market_families(catalogue: &Catalogue) -> Vec<MarketRow<'_>> {
    catalogue.markets().families().map(market_row).collect()
}

fn props(catalogue: &Catalogue) -> Vec<MarketRow<'_>> {
    catalogue.markets().props().map(market_row).collect()
}

fn market_row((key, traits): (&str, MarketTraits)) -> MarketRow<'_> {
    MarketRow { key, shape: traits.shape.key(), winners: traits.settlement.winners }
}

fn bookmakers(catalogue: &Catalogue) -> Vec<BookmakerRow<'_>> {
    let rows = catalogue.bookmakers().iter().map(|Bookmaker { key, title, regions }| BookmakerRow {
        key,
        title,
        regions: regions.iter().map(Region::key).collect(),
    });
    rows.collect()
}

fn sport_table(output: Output, sports: &[SportRow<'_>]) -> String {
    let row = |sport: &SportRow<'_>| {
        let v4_key = sport.v4_key.clone().unwrap_or_else(|| "-".to_owned());
        let texts = [sport.key, sport.title, sport.group, sport.kind].map(str::to_owned);
        [&texts[..], &[sport.competitions.to_string(), v4_key]].concat()
    };
    let header = ["SPORT", "TITLE", "GROUP", "KIND", "COMPETITIONS", "THE ODDS API"];
    output.table(&header, &sports.iter().map(row).collect::<Vec<_>>())
}

fn competition_table(output: Output, competitions: &[CompetitionRow<'_>]) -> String {
    let row = |listed: &CompetitionRow<'_>| {
        let events = if listed.field { "field" } else { "sides" };
        [listed.key, listed.title, events, listed.description].map(str::to_owned).to_vec()
    };
    let header = ["COMPETITION", "TITLE", "EVENTS", "DESCRIPTION"];
    output.table(&header, &competitions.iter().map(row).collect::<Vec<_>>())
}

fn market_table(output: Output, markets: &[MarketRow<'_>]) -> String {
    let row = |market: &MarketRow<'_>| vec![market.key.into(), market.shape.into(), market.winners.to_string()];
    output.table(&["MARKET", "SHAPE", "WINNERS"], &markets.iter().map(row).collect::<Vec<_>>())
}

fn bookmaker_table(output: Output, bookmakers: &[BookmakerRow<'_>]) -> String {
    let row = |book: &BookmakerRow<'_>| vec![book.key.into(), book.title.into(), book.regions.join(", ")];
    output.table(&["BOOKMAKER", "TITLE", "REGIONS"], &bookmakers.iter().map(row).collect::<Vec<_>>())
}
