//! Rotations that take effect at once and are stored nowhere.

use std::sync::Arc;

use crate::clock::Clock;
use crate::http::account::{KeyRotations, OwnRotation, RotatedKey, RotationFailure, RotationFuture};
use crate::keys::issue::{SELF_ROTATION_S, rotate_itself};
use crate::keys::{Keyring, Secret};

#[derive(Debug)]
pub(super) struct DirectRotations {
    pub keyring: Arc<Keyring>,
    pub clock: Clock,
}

impl KeyRotations for DirectRotations {
    fn rotate(&self, order: OwnRotation) -> RotationFuture<'_> {
        let now = self.clock.now().timestamp();
        let key = self.keyring.get(&order.key).unwrap();
        let secret = Secret::generate(key.record().kind).unwrap();
        let rotated = rotate_itself(key.record(), order.presented, secret.stored(), SELF_ROTATION_S, now);
        let rotated = rotated.map_err(RotationFailure::Refused).map(|record| {
            let old_secret_until = record.retired.last().unwrap().until;
            self.keyring.put(record);
            RotatedKey { secret, old_secret_until }
        });
        Box::pin(async move { rotated })
    }
}
