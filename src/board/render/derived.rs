//! Derived prices: best, fair, edges, a row for each bet or edge.

use crate::board::body::Body;
use crate::board::derived::{
    self, BestOutcome, BestRow, Bet, Derived, DerivedQuery, DerivedRow, EdgeKind, EdgeRow, FairFrom, FairQuery,
    FairRow, Leg, RankedRows,
};
use crate::board::node::EventNode;
use crate::board::snapshot::Published;
use crate::model::derived::{FairMethod, Millionths};
use crate::model::{BookId, FairPrice, MarketFamilies, OddsFormat, OutcomeName, Point, Timestamp};

use super::events::included_event;
use super::json;

pub(crate) fn derived(
    published: &Published,
    sport_key: &str,
    families: &MarketFamilies,
    query: &DerivedQuery,
    ranked: Option<&RankedRows>,
) -> Body {
    let at = u32::try_from(published.at_ms().div_euclid(1000)).unwrap_or_default();
    let writer = RowWriter { published, sport_key, query, at: Timestamp::from_unix(at) };
    super::body(|out| {
        out.push(b'[');
        let next = derived::rows(published, families, query, ranked, |node, bet, row| {
            if out.len() > 1 {
                out.push(b',');
            }
            writer.write(node, bet, &row, out);
        });
        out.push(b']');
        next
    })
}

struct RowWriter<'a> {
    published: &'a Published,
    sport_key: &'a str,
    query: &'a DerivedQuery,
    /// When the prices were published: ages are as of then.
    at: Timestamp,
}

impl RowWriter<'_> {
    fn write(&self, node: &EventNode, bet: &Bet<'_>, row: &DerivedRow<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        match (row, self.query.what) {
            (DerivedRow::Edge(row), Derived::Edges { kind, .. }) => self.write_edge(node, bet, row, kind, out),
            (DerivedRow::Best(row), _) => self.write_best(node, bet, row, out),
            (DerivedRow::Fair(row), Derived::Fair(of)) => self.write_fair(node, bet, row, of, out),
            // A query finds rows of its own kind.
            _ => {}
        }
        if self.query.with_event {
            included_event(node.event(), out);
        }
        out.push(b'}');
    }

    /// `"event_id":…` to the description: what the row is about.
    fn write_bet(&self, node: &EventNode, bet: &Bet<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"event_id\":");
        json::string(node.event().id.as_str(), out);
        out.extend_from_slice(b",\"sport_key\":");
        json::string(self.sport_key, out);
        out.extend_from_slice(b",\"market\":");
        json::string(bet.market.key(), out);
        write_point(bet.key.point, out);
        if let Some(description) = bet.key.description {
            out.extend_from_slice(b",\"description\":");
            json::string(description, out);
        }
    }

    /// `,"age_s":…,"bookmakers":[…]`: of the oldest price, and of whom the prices are.
    fn write_origin(&self, oldest: Timestamp, books: &[BookId], out: &mut Vec<u8>) {
        self.write_age(oldest, out);
        out.extend_from_slice(b",\"bookmakers\":");
        json::array(books, out, |book, out| json::string(self.book(*book), out));
    }

    fn write_age(&self, updated: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"age_s\":");
        json::integer(self.at.seconds_since(updated), out);
    }

    fn book(&self, book: BookId) -> &str {
        self.published.register().bookmakers().key(book)
    }

    fn write_best(&self, node: &EventNode, bet: &Bet<'_>, row: &BestRow<'_>, out: &mut Vec<u8>) {
        self.write_bet(node, bet, out);
        out.extend_from_slice(b",\"method\":\"best\"");
        write_format(self.query.format, out);
        write_optional("hold", row.margin.map(|margin| Millionths::of(margin.hold())), out);
        write_optional("overround", row.margin.map(|margin| Millionths::of(margin.overround())), out);
        self.write_origin(row.oldest, &row.books, out);
        out.extend_from_slice(b",\"outcomes\":");
        json::array(&row.outcomes, out, |outcome, out| self.write_best_outcome(bet, outcome, out));
    }

    fn write_best_outcome(&self, bet: &Bet<'_>, outcome: &BestOutcome<'_>, out: &mut Vec<u8>) {
        let BestOutcome { side, best, next } = outcome;
        out.extend_from_slice(b"{\"name\":");
        json::string(side.name, out);
        out.extend_from_slice(b",\"price\":");
        best.price.write_json(self.query.format, out);
        out.extend_from_slice(b",\"bookmaker\":");
        json::string(self.book(bet.books[best.at].book), out);
        out.extend_from_slice(b",\"next\":");
        match next {
            Some(next) => {
                out.extend_from_slice(b"{\"price\":");
                next.price.write_json(self.query.format, out);
                out.extend_from_slice(b",\"bookmaker\":");
                json::string(self.book(bet.books[next.at].book), out);
                out.push(b'}');
            }
            None => out.extend_from_slice(b"null"),
        }
        write_point(side.point, out);
        out.push(b'}');
    }

    fn write_fair(&self, node: &EventNode, bet: &Bet<'_>, row: &FairRow, of: FairQuery, out: &mut Vec<u8>) {
        self.write_bet(node, bet, out);
        out.extend_from_slice(b",\"method\":");
        json::string(of.method.key(), out);
        self.write_fallback(row, out);
        out.extend_from_slice(b",\"from\":");
        self.write_from(of.from, out);
        write_format(self.query.format, out);
        if row.margin.is_some() {
            write_optional("overround", row.margin.map(|margin| Millionths::of(margin.overround())), out);
        }
        self.write_origin(row.oldest, &row.books, out);
        out.extend_from_slice(b",\"outcomes\":");
        json::array(bet.sides.iter().zip(&row.probabilities), out, |(side, probability), out| {
            fair_outcome((side.name, None, side.point), *probability, self.query.format, out);
        });
    }

    /// Which method answered instead, and for whom.
    fn write_fallback(&self, row: &FairRow, out: &mut Vec<u8>) {
        if !row.fallback.is_empty() {
            out.extend_from_slice(b",\"fallback\":{\"method\":");
            json::string(FairMethod::Multiplicative.key(), out);
            out.extend_from_slice(b",\"bookmakers\":");
            json::array(&row.fallback, out, |book, out| json::string(self.book(*book), out));
            out.push(b'}');
        }
    }

    fn write_from(&self, from: FairFrom, out: &mut Vec<u8>) {
        match from {
            FairFrom::Consensus => json::string("consensus", out),
            FairFrom::Bookmaker(book) => json::string(self.book(book), out),
        }
    }

    fn write_edge(&self, node: &EventNode, bet: &Bet<'_>, row: &EdgeRow<'_>, kind: EdgeKind, out: &mut Vec<u8>) {
        out.extend_from_slice(match kind {
            EdgeKind::Value(_) => b"\"kind\":\"ev\",",
            EdgeKind::Arbitrage => b"\"kind\":\"arbitrage\",",
        });
        self.write_bet(node, bet, out);
        write_optional("edge", Some(row.edge), out);
        match kind {
            EdgeKind::Value(of) => {
                out.extend_from_slice(b",\"method\":");
                json::string(of.method.key(), out);
                out.extend_from_slice(b",\"reference\":");
                self.write_from(of.from, out);
            }
            EdgeKind::Arbitrage => out.extend_from_slice(b",\"method\":\"best\",\"reference\":null"),
        }
        write_format(self.query.format, out);
        if row.probability.is_some() {
            write_optional("probability", row.probability.map(Millionths::of), out);
        }
        self.write_origin(row.oldest, &row.books, out);
        out.extend_from_slice(b",\"legs\":");
        json::array(&row.legs, out, |leg, out| self.write_leg(bet, leg, out));
    }

    fn write_leg(&self, bet: &Bet<'_>, leg: &Leg<'_>, out: &mut Vec<u8>) {
        let book = bet.books[leg.offer.at];
        out.extend_from_slice(b"{\"bookmaker\":");
        json::string(self.book(book.book), out);
        out.extend_from_slice(b",\"name\":");
        write_name(leg.side.name, out);
        write_point(leg.side.point, out);
        out.extend_from_slice(b",\"price\":");
        leg.offer.price.write_json(self.query.format, out);
        write_optional("stake", Some(leg.stake), out);
        self.write_age(book.updated, out);
        out.push(b'}');
    }
}

/// A name, and the description that belongs to it.
fn write_name(name: &OutcomeName, out: &mut Vec<u8>) {
    json::string(name, out);
    if let Some(description) = name.description() {
        out.extend_from_slice(b",\"description\":");
        json::string(description, out);
    }
}

/// `{"name":…,"probability":…,"price":…,"point":…}`; the price is null where none can be that long or short.
pub(super) fn fair_outcome(
    (name, description, point): (&str, Option<&str>, Option<Point>),
    probability: f64,
    format: OddsFormat,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"name\":");
    json::string(name, out);
    if let Some(description) = description {
        out.extend_from_slice(b",\"description\":");
        json::string(description, out);
    }
    write_optional("probability", Some(Millionths::of(probability)), out);
    out.extend_from_slice(b",\"price\":");
    match FairPrice::of(probability) {
        Some(price) => price.write_json(format, out),
        None => out.extend_from_slice(b"null"),
    }
    write_point(point, out);
    out.push(b'}');
}

/// `,"name":…`, null without a value.
pub(super) fn write_optional(name: &str, value: Option<Millionths>, out: &mut Vec<u8>) {
    out.push(b',');
    json::string(name, out);
    out.push(b':');
    match value {
        Some(value) => value.write_json(out),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_format(format: OddsFormat, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"format\":");
    json::string(format.key(), out);
}

/// `,"point":…`.
pub(super) fn write_point(point: Option<Point>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"point\":");
    match point {
        Some(point) => point.write(out),
        None => out.extend_from_slice(b"null"),
    }
}
