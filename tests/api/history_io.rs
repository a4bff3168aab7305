//! History in and out of a running service.

use oddsbox::admin::{AdminAccess, AdminError, DataDir, ExportOptions, HistoryRange};
use oddsbox::ingest::{HistoryInput, IngestOptions, IngestSummary, PayloadOptions};
use oddsbox::model::{Region, Regions, Timestamp, World};

use crate::harness::Service;

async fn access(service: &Service) -> AdminAccess {
    AdminAccess::server(&DataDir::new(service.data())).await.expect("a socket").expect("a server")
}

pub async fn export(service: &Service, from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    export_of(service, ExportOptions::History(HistoryRange { world: World::Live, from, to })).await
}

/// The world as it is now.
pub async fn export_world(service: &Service) -> String {
    export_of(service, ExportOptions::World(World::Live)).await
}

async fn export_of(service: &Service, options: ExportOptions) -> String {
    let mut source = access(service).await.export(options).await.expect("an export");
    let mut text = Vec::new();
    while let Some(piece) = source.recv().await {
        text.extend_from_slice(&piece.expect("a piece"));
    }
    String::from_utf8(text).expect("a text")
}

/// Imports lines as an export has them.
pub async fn import_lines(service: &Service, text: &str) -> IngestSummary {
    import(service, text, false, None).await.expect("a report")
}

/// Imports saved responses of the archive; bookmakers that are not declared are British.
pub async fn import_responses(service: &Service, responses: &[String]) -> IngestSummary {
    let regions = Regions::only(Region::Uk);
    let payload = PayloadOptions { world: World::Live, strict: false, sport: None, odds_format: None, regions };
    import(service, &responses.join("\n"), false, Some(payload)).await.expect("a report")
}

pub async fn import(
    service: &Service,
    text: &str,
    strict: bool,
    payload: Option<PayloadOptions>,
) -> Result<IngestSummary, AdminError> {
    let (sender, source) = tokio::sync::mpsc::channel(4);
    let text = bytes::Bytes::copy_from_slice(text.as_bytes());
    let sent = async move {
        for at in (0..text.len()).step_by(10_000) {
            // An input that is refused is not read to its end.
            let _ = sender.send(Ok(text.slice(at..(at + 10_000).min(text.len())))).await;
        }
    };
    let input = HistoryInput { options: IngestOptions { world: World::Live, strict }, payload };
    let access = access(service).await;
    let (answer, ()) = tokio::join!(access.ingest_history(&input, source), sent);
    answer
}
