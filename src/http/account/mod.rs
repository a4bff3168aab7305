//! What a developer does with a key: `/account`, the page, and `POST /account/rotate`.
//!
//! The page is static and open to everyone. The key is typed there, kept in the memory of the page, and sent to `/v1` and to the
//! rotation in a header. A key rotates itself if its operator allows that; the writer does it, as for every other change of a key.

mod page;
mod rotate;

pub(crate) use page::files;
pub use rotate::{KeyRotations, OwnRotation, RotatedKey, RotationFailure, RotationFuture};
pub(crate) use rotate::{NoRotations, check};
