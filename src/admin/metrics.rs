//! `/metrics`: all counters, read for each request.
//!
//! Nothing here waits for the writer, so that the page is available when the writer is stuck. The labels are
//! routes, statuses, reasons, states, kinds of log lines, worlds, sports, bookmakers and feeds, which the operator has set; never a key or a client.

use std::time::Duration;

use super::context::{Context, ServerFacts};
use super::execute::key_counts;
use crate::board::SportBoard;
use crate::clock::Moment;
use crate::cluster::member::ClusterStanding;
use crate::cluster::node::Standing;
use crate::ingest::Ledger;
use crate::log::{self, LineKind};
use crate::metrics::{Kind, MetricsPage, process};
use crate::model::{Timestamp, World};

/// The page as of now.
pub(super) fn page(context: &Context) -> String {
    let now = context.clock.now();
    let mut page = MetricsPage::default();
    about(&mut page, context, now);
    if let Some(server) = context.server.as_deref() {
        requests(&mut page, server);
        connections(&mut page, server);
        if let Some(standing) = server.cluster() {
            cluster(&mut page, &standing);
        }
    }
    board(&mut page, context);
    sources(&mut page, context, now.timestamp());
    feeds(&mut page, &context.ledger);
    writing(&mut page, context);
    history(&mut page, context);
    log_lines(&mut page);
    memory(&mut page);
    page.finish()
}

fn about(page: &mut MetricsPage, context: &Context, now: Moment) {
    let condition = context.boards.condition();
    let maintenance = condition.maintenance(now.timestamp()).is_some();
    page.family("oddsbox_build_info", Kind::Gauge, "The version that runs; always 1.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(server) = context.server.as_deref() {
        let help = "Whether the server is ready: 0 while it stops, and while its writer does not answer.";
        page.family("oddsbox_ready", Kind::Gauge, help).sample(&[], u8::from(server.is_ready()));
        let started = Stamp(server.started().unix_ms);
        page.family("process_start_time_seconds", Kind::Gauge, "When the server started, since 1970.")
            .sample(&[], started);
    }
    page.family("oddsbox_maintenance", Kind::Gauge, "Whether the service is closed for maintenance.")
        .sample(&[], u8::from(maintenance));
    page.family("oddsbox_writable", Kind::Gauge, "Whether the database takes changes.")
        .sample(&[], u8::from(!condition.is_unwritable()));
    let keys = key_counts(context, now.timestamp());
    page.family("oddsbox_keys", Kind::Gauge, "API keys by what they are.")
        .sample(&[("state", "active")], keys.active)
        .sample(&[("state", "revoked")], keys.revoked)
        .sample(&[("state", "expired")], keys.expired);
}

fn requests(page: &mut MetricsPage, server: &dyn ServerFacts) {
    let totals = server.traffic().totals();
    page.family("oddsbox_http_requests_total", Kind::Counter, "Requests answered, by route and status.");
    for total in &totals {
        for (status, count) in &total.statuses {
            let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
            page.sample(&[("route", total.route), ("status", &status)], count);
        }
    }
    let help = "From a request's head to its answer, by route; without the time that the client takes.";
    page.family("oddsbox_http_request_duration_seconds", Kind::Histogram, help);
    for total in totals.iter().filter(|total| total.latency.count() > 0) {
        page.histogram(&[("route", total.route)], &total.latency);
    }
    let help = "Requests that a key did not open: no good key (missing, malformed, unknown, revoked, expired, \
                rotated_out), a spent limit (burst, day, month, or length for a long answer), too much at a time \
                (history, streams), another group of sports (group), a rotation that is not allowed (self_service).";
    page.family("oddsbox_http_requests_refused_total", Kind::Counter, help);
    for (reason, count) in server.traffic().refused() {
        page.sample(&[("reason", reason)], count);
    }
}

fn connections(page: &mut MetricsPage, server: &dyn ServerFacts) {
    let traffic = server.traffic();
    page.family("oddsbox_http_connections", Kind::Gauge, "Connections open now.").sample(&[], traffic.connections());
    let help = "How many connections may be open: `connections`, or fewer where the limit of open files is too low.";
    page.family("oddsbox_http_connections_max", Kind::Gauge, help).sample(&[], traffic.connections_max());
    page.family("oddsbox_http_connections_accepted_total", Kind::Counter, "Connections accepted.")
        .sample(&[], traffic.accepted());
    page.family(
        "oddsbox_http_connections_refused_total",
        Kind::Counter,
        "Connections closed because their address had too many open.",
    )
    .sample(&[], traffic.rejected_connections());
    let streams = traffic.streams();
    page.family("oddsbox_streams", Kind::Gauge, "Streams open now.").sample(&[], streams.open());
    page.family("oddsbox_stream_bytes_total", Kind::Counter, "Bytes of streams.").sample(&[], streams.bytes());
    let help = "Times that a slow client of a stream got several entries as one.";
    page.family("oddsbox_stream_conflated_total", Kind::Counter, help).sample(&[], streams.merged());
    let help = "Times that a client of a stream had to begin anew.";
    page.family("oddsbox_stream_resets_total", Kind::Counter, help).sample(&[], streams.resets());
    let help = "The time from the publication of changes until a stream took them.";
    page.family("oddsbox_stream_delivery_seconds", Kind::Histogram, help).histogram(&[], &streams.deliveries());
    let work = traffic.work();
    let help = "Requests whose answer is being computed, or waits for its turn: derived prices that are not cached.";
    page.family("oddsbox_computing_requests", Kind::Gauge, help).sample(&[], work.waiting());
    let help = "Answers that were computed so.";
    page.family("oddsbox_computed_answers_total", Kind::Counter, help).sample(&[], work.computed());
    let help = "The time that requests waited for them.";
    page.family("oddsbox_computed_answers_seconds_total", Kind::Counter, help).sample(&[], work.time().as_secs_f64());
    let heads = server.heads();
    let help =
        "Bytes of request heads that are not complete, over all listeners; the first 8 KiB of each are not counted.";
    page.family("oddsbox_http_unfinished_heads_bytes", Kind::Gauge, help).sample(&[], heads.bytes());
    let help = "How many there may be.";
    page.family("oddsbox_http_unfinished_heads_max_bytes", Kind::Gauge, help).sample(&[], heads.max());
    let help = "Connections closed as their unfinished head was too long, or there were too many such bytes in all.";
    page.family("oddsbox_http_heads_refused_total", Kind::Counter, help).sample(&[], heads.refused());
    page.family("oddsbox_tls_handshakes_failed_total", Kind::Counter, "TLS handshakes that failed.")
        .sample(&[], traffic.handshakes_failed());
}

/// A single node has none of these.
fn cluster(page: &mut MetricsPage, standing: &ClusterStanding) {
    let is_following = standing.name() == Standing::Following.name();
    let help = "Whether this node follows the log of its cluster, and its lease holds.";
    page.family("oddsbox_cluster_up", Kind::Gauge, help).sample(&[], u8::from(is_following && standing.has_lease));
    page.family("oddsbox_cluster_standing", Kind::Gauge, "Where this node stands: 1 for one of the states.");
    for name in Standing::NAMES {
        page.sample(&[("state", &name.replace(' ', "_"))], u8::from(name == standing.name()));
    }
    page.family("oddsbox_cluster_duty", Kind::Gauge, "Whether this node polls and publishes.")
        .sample(&[], u8::from(standing.has_duty));
    // Without a contact, these are not known.
    let (Some(contact_ms), Some(behind_ms)) = (standing.contact_ms(), standing.behind_ms()) else { return };
    let seconds = |ms| Duration::from_millis(ms).as_secs_f64();
    let help = "Since this node last reported itself to the engine and got an answer.";
    page.family("oddsbox_cluster_contact_age_seconds", Kind::Gauge, help).sample(&[], seconds(contact_ms));
    let help =
        "How much older the last entry that this node has applied is than the last of the log, as of that answer.";
    page.family("oddsbox_cluster_behind_seconds", Kind::Gauge, help).sample(&[], seconds(behind_ms));
    page.family("oddsbox_cluster_nodes", Kind::Gauge, "Nodes with a lease, as of that answer.")
        .sample(&[], standing.leased_nodes());
}

fn board(page: &mut MetricsPage, context: &Context) {
    type Count = fn(&SportBoard) -> usize;
    let families: [(&'static str, &'static str, Count); 3] = [
        ("oddsbox_events", "Events scheduled or live.", SportBoard::open_event_count),
        ("oddsbox_records", "Records of odds: a bookmaker's prices of a market of an event.", |sport| {
            sport.current().record_count()
        }),
        ("oddsbox_bookmakers", "Bookmakers with a published price.", SportBoard::book_count),
    ];
    for (name, help, count) in families {
        page.family(name, Kind::Gauge, help);
        each_sport(context, |world, sport, board| {
            page.sample(&[("world", world), ("sport", sport)], count(board));
        });
    }
    let help = "Memory of rendered answers that are kept for the next who asks the same, queries included.";
    page.family("oddsbox_kept_answers_bytes", Kind::Gauge, help);
    each_sport(context, |world, sport, board| {
        page.sample(&[("world", world), ("sport", sport)], board.kept_bytes());
    });
    for world in World::ALL {
        let across_sports = context.boards.load(world).kept_bytes_across_sports();
        page.sample(&[("world", world.name()), ("sport", "upcoming")], across_sports);
    }
    let help = "How many entries of the log the stream that is furthest behind has not taken yet.";
    page.family("oddsbox_stream_lag_entries", Kind::Gauge, help);
    for world in World::ALL {
        let end = context.boards.load(world).position().sequence;
        let lag = context.boards.feed(world).slowest().map_or(0, |next| end.saturating_sub(next));
        page.sample(&[("world", world.name())], lag);
    }
    let help = "When a sport's prices were last published, since 1970.";
    page.family("oddsbox_last_publication_timestamp_seconds", Kind::Gauge, help);
    each_sport(context, |world, sport, board| {
        page.sample(&[("world", world), ("sport", sport)], Stamp(board.published().at_ms()));
    });
}

fn each_sport(context: &Context, mut each: impl FnMut(&str, &str, &SportBoard)) {
    for world in World::ALL {
        let board = context.boards.load_full(world);
        for (id, sport) in context.boards.catalogue().sports() {
            each(world.name(), &sport.key, board.sport(id));
        }
    }
}

/// The live world's sources. The sandbox's are always simulated, so their age tells nothing.
fn sources(page: &mut MetricsPage, context: &Context, now: Timestamp) {
    let board = context.boards.load_full(World::Live);
    let catalogue = context.boards.catalogue();
    let register = board.register().bookmakers();
    let all = || {
        let sports = catalogue.sports().map(|(id, sport)| (&sport.key, board.sport(id).sources()));
        sports.flat_map(|(sport, sources)| sources.iter().map(move |source| (sport, source)))
    };
    page.family("oddsbox_source_age_seconds", Kind::Gauge, "Since the last good read of a bookmaker's prices.");
    for (sport, source) in all() {
        let age_s = now.seconds_since(source.source.last_read);
        page.sample(&[("sport", sport), ("bookmaker", register.key(source.bookmaker))], age_s);
    }
    page.family("oddsbox_source_stale", Kind::Gauge, "Whether that read is too long ago.");
    for (sport, source) in all() {
        let labels = [("sport", &**sport), ("bookmaker", register.key(source.bookmaker))];
        page.sample(&labels, u8::from(source.is_stale(now)));
    }
}

fn feeds(page: &mut MetricsPage, ledger: &Ledger) {
    let accounts = ledger.accounts();
    page.family("oddsbox_feed_lines_accepted_total", Kind::Counter, "Lines of a feed that were taken.");
    for (feed, account) in &accounts {
        page.sample(&[("feed", feed), ("world", account.world.name())], account.accepted);
    }
    page.family("oddsbox_feed_lines_rejected_total", Kind::Counter, "Lines of a feed that were not, and why.");
    for (feed, account) in &accounts {
        for (reason, count) in &account.rejected {
            page.sample(&[("feed", feed), ("world", account.world.name()), ("reason", reason.key())], count);
        }
    }
    page.family("oddsbox_feeder_added", Kind::Gauge, "What a feeder with a quota has added, in all.");
    for (feed, account) in &accounts {
        if let Some((used, _)) = account.added {
            page.sample(&[("feed", feed), ("what", "bookmakers")], used.bookmakers);
            page.sample(&[("feed", feed), ("what", "events")], used.events);
        }
    }
    let help = "When a feed last brought something, since 1970.";
    page.family("oddsbox_feed_last_good_timestamp_seconds", Kind::Gauge, help);
    for (feed, account) in &accounts {
        if let Some(at) = account.last_good {
            page.sample(&[("feed", feed)], at.unix());
        }
    }
    let help = "Requests that a polled feed's upstream still allows.";
    page.family("oddsbox_feed_upstream_remaining", Kind::Gauge, help);
    for (feed, account) in &accounts {
        if let Some(remaining) = account.upstream.as_ref().and_then(|upstream| upstream.remaining) {
            page.sample(&[("feed", feed)], remaining);
        }
    }
}

fn history(page: &mut MetricsPage, context: &Context) {
    let writing = context.writer.writing();
    page.family("oddsbox_log_entries_total", Kind::Counter, "Entries of the log of changes ever written.");
    for world in World::ALL {
        page.sample(&[("world", world.name())], writing.logs[world.index()].entries());
    }
    page.family("oddsbox_log_changes", Kind::Gauge, "Changes in the entries that are kept.");
    for world in World::ALL {
        page.sample(&[("world", world.name())], writing.logs[world.index()].changes());
    }
    page.family("oddsbox_log_bytes", Kind::Gauge, "Size of the entries, keyframes and lines of events that are kept.");
    for world in World::ALL {
        page.sample(&[("world", world.name())], writing.logs[world.index()].bytes());
    }
    page.family("oddsbox_keyframe_duration_seconds", Kind::Histogram, "Writing one keyframe of one sport.")
        .histogram(&[], &writing.keyframes.snapshot());
    page.family("oddsbox_log_pack_duration_seconds", Kind::Histogram, "Compressing entries of the log into a row.")
        .histogram(&[], &writing.packs.snapshot());
    page.family("oddsbox_lines_duration_seconds", Kind::Histogram, "Committing a piece of the lines of events.")
        .histogram(&[], &writing.lines.snapshot());
    page.family("oddsbox_log_trim_duration_seconds", Kind::Histogram, "Removing a piece of the oldest history.")
        .histogram(&[], &writing.trims.snapshot());
}

fn writing(page: &mut MetricsPage, context: &Context) {
    let writing = context.writer.writing();
    page.family("oddsbox_publish_duration_seconds", Kind::Histogram, "Publishing one sport's prices.")
        .histogram(&[], &writing.publications.snapshot());
    page.family("oddsbox_commit_duration_seconds", Kind::Histogram, "Committing a batch to the database.")
        .histogram(&[], &writing.commits.snapshot());
    page.family("oddsbox_commit_failures_total", Kind::Counter, "Commits that the database did not take.")
        .sample(&[], writing.failures());
    page.family("oddsbox_writer_queue_length", Kind::Gauge, "Operations that wait for the writer.")
        .sample(&[], context.writer.queue_len());
    page.family("oddsbox_writer_queue_max", Kind::Gauge, "How many may wait.").sample(&[], context.writer.queue_max());
    page.family("oddsbox_writer_fast_queue_length", Kind::Gauge, "Commands that wait in the writer's fast lane.")
        .sample(&[], context.writer.fast_queue_len());
    page.family("oddsbox_writer_fast_queue_max", Kind::Gauge, "How many may wait there.")
        .sample(&[], context.writer.fast_queue_max());
    page.family("oddsbox_database_size_bytes", Kind::Gauge, "Size of the database file.");
    if let Ok(file) = std::fs::metadata(context.data.file()) {
        page.sample(&[], file.len());
    }
}

/// The log is the process's: these count from its start, whichever server of it is asked.
fn log_lines(page: &mut MetricsPage) {
    let help = "Log lines dropped because standard error was blocked, full or closed.";
    page.family("oddsbox_log_lines_dropped_total", Kind::Counter, help).sample(&[], log::dropped());
    let help = "Log lines left out because too many of their kind came in a second.";
    page.family("oddsbox_log_lines_suppressed_total", Kind::Counter, help);
    for kind in LineKind::ALL {
        page.sample(&[("kind", kind.key())], log::suppressed(kind));
    }
}

fn memory(page: &mut MetricsPage) {
    let families = [
        ("process_resident_memory_bytes", "Memory held in RAM.", process::resident_bytes()),
        ("process_open_fds", "Open file descriptors.", process::open_files()),
        ("process_max_fds", "How many may be open.", process::open_files_max()),
    ];
    for (name, help, value) in families {
        if let Some(value) = value {
            page.family(name, Kind::Gauge, help).sample(&[], value);
        }
    }
}

/// Milliseconds since 1970, written in seconds.
struct Stamp(i64);

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0.div_euclid(1000), self.0.rem_euclid(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::engine::{ClusterView, NodeView};
    use crate::cluster::lease::Contact;
    use crate::ingest::{FeedKind, Upstream};
    use crate::model::{EntryId, Reason};

    fn samples(page: MetricsPage) -> Vec<String> {
        page.finish().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn node(name: &str, lease_ms: u64) -> NodeView {
        let applied = EntryId { ms: 10_000, number: 0 };
        NodeView { node: name.into(), applied, behind_ms: 0, details: "".into(), lease_ms, has_left: false }
    }

    #[test]
    fn a_node_of_a_cluster_reports_its_standing_and_its_lag() {
        let at = |mono_ms| Moment::unset(1_794_699_540_000, mono_ms);
        let last = EntryId { ms: 12_500, number: 3 };
        let nodes = vec![node("a", 4500), node("b", 0), node("c", 100)];
        let view = ClusterView { last, nodes, ..ClusterView::default() };
        let standing = ClusterStanding {
            node: "a".into(),
            standing: Standing::Following,
            applied: EntryId { ms: 11_000, number: 0 },
            has_lease: true,
            has_duty: true,
            contact: Some(Contact { view, sent: at(5000) }),
            failure: None,
            now: at(5250),
        };
        let mut page = MetricsPage::default();
        cluster(&mut page, &standing);
        let following = samples(page);
        assert_eq!(
            following,
            [
                "oddsbox_cluster_up 1",
                r#"oddsbox_cluster_standing{state="following"} 1"#,
                r#"oddsbox_cluster_standing{state="cut_off"} 0"#,
                r#"oddsbox_cluster_standing{state="stalled"} 0"#,
                r#"oddsbox_cluster_standing{state="lost"} 0"#,
                r#"oddsbox_cluster_standing{state="behind"} 0"#,
                r#"oddsbox_cluster_standing{state="unreadable"} 0"#,
                r#"oddsbox_cluster_standing{state="disagrees"} 0"#,
                r#"oddsbox_cluster_standing{state="name_taken"} 0"#,
                "oddsbox_cluster_duty 1",
                "oddsbox_cluster_contact_age_seconds 0.25",
                "oddsbox_cluster_behind_seconds 1.5",
                "oddsbox_cluster_nodes 2",
            ]
        );
        for (state, has_lease) in [(Standing::Following, false), (Standing::CutOff, true)] {
            let contact = None;
            let mut page = MetricsPage::default();
            cluster(
                &mut page,
                &ClusterStanding { standing: state, has_lease, has_duty: false, contact, ..standing.clone() },
            );
            let samples = samples(page);
            assert_eq!(samples[0], "oddsbox_cluster_up 0");
            assert_eq!(samples.last().unwrap(), "oddsbox_cluster_duty 0", "what is not known is left out");
        }
    }

    #[test]
    fn feeds_are_told_by_name_and_reason() {
        let ledger = Ledger::default();
        let (acme, odd) = (("acme", FeedKind::TheOddsApi, World::Live), ("a\"b", FeedKind::Push, World::Sandbox));
        let at = Timestamp::from_unix_ms(1_794_699_540_000);
        ledger.count(acme, at, 3, [(Reason::Late, 2), (Reason::BadJson, 1)].into_iter());
        let upstream = Upstream { remaining: Some(40), ..Upstream::default() };
        ledger.upstream(acme, upstream);
        ledger.count(odd, at, 0, std::iter::empty());
        let mut page = MetricsPage::default();
        feeds(&mut page, &ledger);
        assert_eq!(
            samples(page),
            [
                r#"oddsbox_feed_lines_accepted_total{feed="a\"b",world="sandbox"} 0"#,
                r#"oddsbox_feed_lines_accepted_total{feed="acme",world="live"} 3"#,
                r#"oddsbox_feed_lines_rejected_total{feed="acme",world="live",reason="bad_json"} 1"#,
                r#"oddsbox_feed_lines_rejected_total{feed="acme",world="live",reason="late"} 2"#,
                r#"oddsbox_feed_last_good_timestamp_seconds{feed="acme"} 1794699540"#,
                r#"oddsbox_feed_upstream_remaining{feed="acme"} 40"#,
            ]
        );
    }
}
