//! A connection that is made when it is first used, and again after an error.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError};
use tokio::sync::Mutex;

use super::super::EngineError;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Link(Mutex<Option<MultiplexedConnection>>);

impl Link {
    /// The connection, on which an answer may take so long.
    pub(super) async fn connection(
        &self,
        client: &Client,
        answer: Duration,
    ) -> Result<MultiplexedConnection, EngineError> {
        let mut link = self.0.lock().await;
        let connection = match &mut *link {
            Some(connection) => connection,
            link => {
                let config = AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT));
                let made = client.get_multiplexed_async_connection_with_config(&config).await;
                link.insert(made.map_err(|error| error_of(&error))?)
            }
        };
        let mut connection = connection.clone();
        connection.set_response_timeout(answer);
        Ok(connection)
    }

    /// The answer; after an error that says nothing of the server's state, the connection is made anew.
    pub(super) async fn checked<T>(&self, answer: Result<T, RedisError>) -> Result<T, EngineError> {
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error_of(&error),
        };
        if matches!(error, EngineError::Unreachable(_)) {
            *self.0.lock().await = None;
        }
        Err(error)
    }
}

/// What an error of the client means. Only what the server itself refuses was surely not done.
fn error_of(error: &RedisError) -> EngineError {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return EngineError::Refused(error.to_string().into());
    }
    match error.code() {
        Some("LOST") => EngineError::Lost,
        Some("DISAGREES") => EngineError::Disagrees,
        Some("FENCED") => EngineError::Fenced,
        Some("SETTLING") => EngineError::Settling,
        Some("TAKEN") => EngineError::NameTaken,
        // It is starting, or a replica was asked that has not taken over.
        Some("LOADING" | "MASTERDOWN" | "READONLY" | "CLUSTERDOWN") | None => {
            EngineError::Unreachable(error.to_string().into())
        }
        Some(_) => EngineError::Refused(error.to_string().into()),
    }
}
