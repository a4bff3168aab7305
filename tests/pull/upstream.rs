//! A fake of The Odds API with configurable responses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    Json(String),
    Gzip(String),
    /// A status with its headers and body.
    Status(u16, &'static str, &'static str),
    /// Half of a body.
    Truncated(String),
    /// Nothing, until the client gives up.
    Silence,
}

/// Responses by path, and the requests received.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<Mutex<UpstreamState>>,
}

#[derive(Debug)]
struct UpstreamState {
    replies: Vec<(String, Reply)>,
    requests: Vec<String>,
    /// Credits left; `None` for an upstream that does not report them.
    credits: Option<u64>,
    used: u64,
}

impl Default for UpstreamState {
    fn default() -> Self {
        UpstreamState { replies: Vec::new(), requests: Vec::new(), credits: Some(10_000_000), used: 0 }
    }
}

/// The cost of odds and scores; the list of sports is free.
pub const COST: u64 = 3;

impl Upstream {
    pub async fn start(tls: Option<TlsAcceptor>) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let upstream = Upstream { address: listener.local_addr().expect("an address"), state: Arc::default() };
        let own = upstream.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (own, tls) = (own.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => own.serve(stream).await,
                        Some(tls) => {
                            // A client that does not trust the certificate disconnects.
                            if let Ok(stream) = tls.accept(stream).await {
                                own.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        upstream
    }

    /// Sets the response to requests whose path contains this text.
    pub fn answer(&self, path: &str, reply: Reply) {
        let mut state = self.state.lock().expect("a lock");
        state.replies.retain(|(known, _)| known != path);
        state.replies.push((path.to_owned(), reply));
    }

    /// Sets the credits left; `None` to stop reporting them.
    pub fn set_credits(&self, credits: Option<u64>) {
        self.state.lock().expect("a lock").credits = credits;
    }

    pub fn credits(&self) -> Option<u64> {
        self.state.lock().expect("a lock").credits
    }

    /// Charges a request, and returns the headers with the credits left.
    fn charge(&self, cost: u64) -> String {
        let mut state = self.state.lock().expect("a lock");
        let Some(credits) = state.credits else { return String::new() };
        state.credits = Some(credits.checked_sub(cost).expect("no request costs more than is left"));
        state.used += cost;
        let (left, used) = (credits - cost, state.used);
        format!("x-requests-remaining: {left}\r\nx-requests-used: {used}\r\nx-requests-last: {cost}\r\n")
    }

    /// The requested targets, in order.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().expect("a lock").requests.clone()
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match stream.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let head = String::from_utf8(head).expect("a request");
        let target = head.split(' ').nth(1).expect("a target").to_owned();
        let is_list = target.contains("/sports?");
        let reply = {
            let mut state = self.state.lock().expect("a lock");
            let path = target.split('?').next().expect("a path").to_owned();
            state.requests.push(target);
            state.replies.iter().find(|(known, _)| path.ends_with(known)).map(|(_, reply)| reply.clone())
        };
        let reply = reply.unwrap_or(Reply::Status(404, "", "{\"message\":\"nothing here\"}"));
        let cost = if is_list || matches!(reply, Reply::Status(..)) { 0 } else { COST };
        let _ = self.send(&mut stream, reply, &self.charge(cost)).await;
        let _ = stream.shutdown().await;
    }

    async fn send(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        reply: Reply,
        quota: &str,
    ) -> std::io::Result<()> {
        let (status, headers, body, sent) = match reply {
            Reply::Silence => {
                let mut end = [0];
                let _ = stream.read(&mut end).await;
                return Ok(());
            }
            Reply::Json(text) => (200, String::new(), text.clone().into_bytes(), text.len()),
            Reply::Gzip(text) => {
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut packer, text.as_bytes())?;
                let body = packer.finish()?;
                let sent = body.len();
                (200, "content-encoding: gzip\r\n".to_owned(), body, sent)
            }
            Reply::Truncated(text) => (200, String::new(), text.clone().into_bytes(), text.len() / 2),
            Reply::Status(status, headers, body) => (status, headers.to_owned(), body.into(), body.len()),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{quota}{headers}\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body[..sent]).await
    }
}
