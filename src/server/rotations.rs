//! The rotation of keys by their holders, as the public interface asks for it.

use crate::http::{KeyRotations, OwnRotation, RotatedKey, RotationFailure, RotationFuture};
use crate::writer::{KeyError, OwnRotations};

#[derive(Debug)]
pub(super) struct WriterRotations(pub(super) OwnRotations);

impl KeyRotations for WriterRotations {
    fn rotate(&self, order: OwnRotation) -> RotationFuture<'_> {
        Box::pin(async move {
            let OwnRotation { key, presented, who } = order;
            let issued = self.0.rotate(&key, presented, who).await?;
            issued.key.meter().streams().settled().await;
            // The secret that was replaced is the last of them.
            let old_secret_until = issued.key.record().retired.last().map(|old| old.until);
            let old_secret_until = old_secret_until.ok_or(RotationFailure::Unavailable)?;
            Ok(RotatedKey { secret: issued.secret, old_secret_until })
        })
    }
}

impl From<KeyError> for RotationFailure {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Refused(error) => RotationFailure::Refused(error),
            error => {
                tracing::warn!(%error, "a key could not be rotated by its holder");
                RotationFailure::Unavailable
            }
        }
    }
}
