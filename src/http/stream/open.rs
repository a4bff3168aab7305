//! Opening a stream: a place for it, the price of its snapshot, the first headers.

use std::net::IpAddr;
use std::sync::Arc;

use http::Request;
use tokio::sync::Notify;

use super::context::Following;
use super::request::StreamPlan;
use super::session::{EventStream, StreamStart};
use crate::board::{ChangeFilter, WorldBoard};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::handle::{self, Handled};
use crate::http::exchange::service::Service;
use crate::http::exchange::waits::PaidRequest;
use crate::http::transport::AbortConnection;
use crate::keys::{KeyTicket, LeaseDeclined};
use crate::wake::WakeSlot;

/// Boards with more records than this are counted on a thread of their own.
const COUNTED_HERE_MAX: usize = 20_000;
/// How long a client waits that may have no further stream.
const RETRY_AFTER_S: u32 = 30;

/// A stream that is to be opened.
#[derive(Debug)]
pub struct StreamNeed {
    pub(crate) plan: StreamPlan,
    pub(crate) ticket: KeyTicket,
}

impl Service {
    /// Opens the stream of a request, or says why not. Streams are counted under an address, if there is one.
    pub(crate) async fn open_stream<B>(
        &self,
        request: &Request<B>,
        address: Option<IpAddr>,
        paid: PaidRequest,
        StreamNeed { plan, ticket }: StreamNeed,
    ) -> Handled {
        let slot = Arc::new(WakeSlot::default());
        let abort =
            request.extensions().get::<AbortConnection>().map_or_else(Arc::<Notify>::default, AbortConnection::get);
        let streams = Arc::clone(paid.grant.grant().meter().streams());
        let streams_max = paid.grant.grant().record().limits.streams;
        let taken = self.streams.take_place(address).and_then(|place| {
            let seat = streams.open(streams_max, &slot, abort).ok_or_else(|| of_key(streams_max, streams.count()))?;
            Ok((place, seat))
        });
        let (place, seat) = match taken {
            Ok(taken) => taken,
            Err(message) => {
                let error = ApiError::new(Code::TooManyStreams, message).retry_after(RETRY_AFTER_S);
                return handle::refused(self, request, paid.refund().grant(), self.clock.now(), &error).into();
            }
        };
        match streams.are_allowed().await {
            Ok(true) => {}
            Ok(false) => {
                let message = format!(
                    "This key has {streams_max} streams open, as many as it may have. Close one of them first."
                );
                let error = ApiError::new(Code::TooManyStreams, message).retry_after(RETRY_AFTER_S);
                return handle::refused(self, request, paid.refund().grant(), self.clock.now(), &error).into();
            }
            Err(LeaseDeclined) => {
                let error = ApiError::overloaded();
                return handle::refused(self, request, paid.refund().grant(), self.clock.now(), &error).into();
            }
        }
        let world = self.streams.boards.load_full(plan.world);
        let following = match plan.since {
            Some(since) => self.streams.following(plan.world, since, world.position()).await,
            None => Following::Gone,
        };
        let has_snapshot = plan.wants_snapshot && matches!(following, Following::Gone);
        let rows = if has_snapshot { count(&world, &plan.filter).await } else { 0 };
        let read = if let Following::Read(entries) = following { Some(entries) } else { None };
        let context = Arc::clone(&self.streams);
        let start = StreamStart { plan, world, read, ticket, seat, place, slot };
        let stream = EventStream::new(context, start);
        handle::opened(self, request, self.clock.now(), paid, rows, stream)
    }
}

fn of_key(streams_max: u32, open: usize) -> String {
    format!("This key has {open} streams open, and may have {streams_max}. Close one of them first.")
}

/// How many records a snapshot has.
async fn count(world: &Arc<WorldBoard>, filter: &Arc<ChangeFilter>) -> usize {
    if world.record_count() <= COUNTED_HERE_MAX {
        return filter.count(world);
    }
    let (world, filter) = (Arc::clone(world), Arc::clone(filter));
    tokio::task::spawn_blocking(move || filter.count(&world)).await.unwrap_or(0)
}
