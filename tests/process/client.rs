//! A client of the public API that keeps its connection open.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::Answer;
use crate::harness::tls::Wire;

/// The maximum time for a response.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Connection {
    stream: BufReader<Box<dyn Wire>>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection::over(Box::new(stream)))
    }

    /// Uses an existing connection.
    pub fn over(stream: Box<dyn Wire>) -> Connection {
        Connection { stream: BufReader::new(stream) }
    }

    /// GET with the key in the header.
    pub async fn get(&mut self, path: &str, key: &str) -> io::Result<Answer> {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {key}\r\n\r\n")).await
    }

    /// Sends a whole request without a body and reads its response, which must have a length.
    pub async fn send(&mut self, request: &str) -> io::Result<Answer> {
        timeout(PATIENCE, self.exchange(request)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Sends part of a request, or several.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    async fn exchange(&mut self, request: &str) -> io::Result<Answer> {
        self.write(request.as_bytes()).await?;
        let mut bytes = Vec::with_capacity(1024);
        loop {
            let before = bytes.len();
            if self.stream.read_until(b'\n', &mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if &bytes[before..] == b"\r\n" {
                break;
            }
        }
        let head = Answer::parse(&bytes);
        let length: usize = head.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let begin = bytes.len();
        bytes.resize(begin + length, 0);
        self.stream.read_exact(&mut bytes[begin..]).await?;
        Ok(Answer::parse(&bytes))
    }
}

/// One request on a new connection.
pub async fn get(address: SocketAddr, path: &str, key: &str) -> Answer {
    Connection::open(address).await.expect("a connection").get(path, key).await.expect("an answer")
}
