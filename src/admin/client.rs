//! A command's side of the socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Frame;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::HOST;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::export::ExportOptions;
use super::pieces::{self, PieceSource, PiecesBody};
use super::protocol::{Command, Failure, FailureBody};
use crate::ingest::{HistoryInput, IngestOptions, PayloadOptions};
use crate::model::Region;

/// How long a command may take. One that reads the whole file takes as long as that takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Why no answer was got.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the server does not answer ({0}): see its log, and try again")]
    Broken(String),
    #[error("the server did not answer within {} s; the command may still be done: see the audit log", PATIENCE.as_secs())]
    TooSlow,
    #[error(transparent)]
    Refused(#[from] Failure),
}

/// A server that answers on its socket.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    /// Finds out whether a server answers.
    pub(super) async fn connect(path: &Path) -> io::Result<Client> {
        UnixStream::connect(path).await?;
        Ok(Client { path: path.to_owned() })
    }

    /// Sends a command; its answer as JSON.
    pub(super) async fn ask(&self, command: &Command) -> Result<Bytes, ClientError> {
        let body = serde_json::to_vec(command).map_err(broken)?;
        let answer = self.send(Method::POST, "/command", pieces::whole(Bytes::from(body)));
        if command.is_long() {
            return answer.await;
        }
        tokio::time::timeout(PATIENCE, answer).await.unwrap_or(Err(ClientError::TooSlow))
    }

    /// Sends feed lines until their end; the report on them as JSON.
    pub(super) async fn ingest(&self, options: IngestOptions, source: PieceSource) -> Result<Bytes, ClientError> {
        let target = format!("/ingest?world={}&strict={}", options.world.name(), options.strict);
        self.send(Method::POST, &target, pieces::body(source)).await
    }

    /// Sends a payload of The Odds API; the report on it as JSON.
    pub(super) async fn ingest_payload(
        &self,
        options: &PayloadOptions,
        source: PieceSource,
    ) -> Result<Bytes, ClientError> {
        self.send(Method::POST, &payload_target(options), pieces::body(source)).await
    }

    /// Sends history; the report on it as JSON.
    pub(super) async fn ingest_history(
        &self,
        options: &HistoryInput,
        source: PieceSource,
    ) -> Result<Bytes, ClientError> {
        let IngestOptions { world, strict } = options.options;
        let target = match &options.payload {
            Some(payload) => payload_target(payload),
            None => format!("/ingest?world={}&strict={strict}", world.name()),
        };
        self.send(Method::POST, &format!("{target}&history=true"), pieces::body(source)).await
    }

    /// A world or its history as lines, as they come.
    pub(super) async fn export(&self, options: ExportOptions) -> Result<PieceSource, ClientError> {
        let (mut sender, request, connection) =
            self.connected(Method::GET, &options.target(), pieces::whole(Bytes::new())).await?;
        let driven = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(broken)?;
        if !response.status().is_success() {
            return Err(refusal(&response.into_body().collect().await.map_err(broken)?.to_bytes()));
        }
        let (pieces, source) = pieces::channel();
        tokio::spawn(async move {
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                let piece = match frame.map(Frame::into_data) {
                    Ok(Ok(data)) => Ok(data),
                    Ok(Err(_trailers)) => continue,
                    Err(error) => Err(io::Error::other(broken(error))),
                };
                if pieces.send(piece).await.is_err() {
                    break;
                }
            }
            driven.abort();
        });
        Ok(source)
    }

    /// A connection of its own, and the request for it.
    async fn connected(
        &self,
        method: Method,
        target: &str,
        body: PiecesBody,
    ) -> Result<(SendRequest<PiecesBody>, Request<PiecesBody>, Connection<TokioIo<UnixStream>, PiecesBody>), ClientError>
    {
        let stream = UnixStream::connect(&self.path).await.map_err(broken)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let request = Request::builder().method(method).uri(target).header(HOST, "oddsbox");
        Ok((sender, request.body(body).map_err(broken)?, connection))
    }

    async fn send(&self, method: Method, target: &str, body: PiecesBody) -> Result<Bytes, ClientError> {
        let (mut sender, request, connection) = self.connected(method, target, body).await?;
        let exchange = async move {
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
            if status.is_success() { Ok(body) } else { Err(refusal(&body)) }
        };
        // The connection must be driven while the exchange goes on. If it breaks, the exchange says so itself.
        let driven = async {
            let _ = connection.await;
            std::future::pending().await
        };
        tokio::select! {
            answer = exchange => answer,
            never = driven => never,
        }
    }
}

fn payload_target(options: &PayloadOptions) -> String {
    let (world, strict) = (options.world.name(), options.strict);
    let mut target = format!("/ingest?format=the-odds-api&world={world}&strict={strict}");
    if let Some(sport) = &options.sport {
        target.extend(["&sport=", sport]);
    }
    if let Some(format) = options.odds_format {
        target.extend(["&odds_format=", format.key()]);
    }
    if !options.regions.is_empty() {
        let regions: Vec<&str> = options.regions.iter().map(Region::key).collect();
        target.extend(["&regions=", &regions.join(",")]);
    }
    target
}

fn refusal(body: &[u8]) -> ClientError {
    match serde_json::from_slice::<FailureBody>(body) {
        Ok(body) => ClientError::Refused(body.error),
        Err(error) => broken(error),
    }
}

fn broken(error: impl std::error::Error) -> ClientError {
    let source = error.source().map(|source| format!(": {source}"));
    ClientError::Broken(format!("{error}{}", source.unwrap_or_default()))
}
