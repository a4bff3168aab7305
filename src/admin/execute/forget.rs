//! Deleting the history of one event. Each step is prepared beside the writer, on a thread of its own.

use super::super::context::Context;
use super::super::protocol::{Answer, Failure, FailureCode, ForgetOrder, ForgottenAnswer};
use super::history::{find, not_in_history};
use crate::model::{EventId, SportId, World};
use crate::store::{ForgetOutcome, ForgetProgress, ForgottenEvent, HistoryError, PreparedForget};
use crate::writer::{HistoryImport, WriteError};

pub(super) async fn forget(order: ForgetOrder, context: &Context, who: &str) -> Result<Answer, Failure> {
    let world = World::from(order.world);
    let id = EventId::new(&order.event).ok_or_else(|| not_in_history(world, &order.event))?;
    let sport = match &order.sport {
        Some(key) => named_sport(key, context)?,
        None => sport_of(world, &id, context).await?.ok_or_else(|| not_in_history(world, &order.event))?,
    };
    refuse_on_board((world, sport), &id, context)?;
    if context.writer.membership().await?.is_some() {
        return Err(WriteError::OneNode.into());
    }
    // Before anything is deleted, so that whatever becomes of the command is on record.
    let sport_key = context.boards.catalogue()[sport].key.to_string();
    context.writer.audit(who, "forget history", &order.event, format!("{world} {sport_key}")).await?;
    let (event, mut progress) = context.history.begin_forget(world, sport, &id).map_err(failed)?;
    let mut changes = 0;
    loop {
        let (next, prepared) = prepare(event.clone(), progress, context).await?;
        let Some(prepared) = prepared else {
            progress = next;
            break;
        };
        let lost = prepared.lost;
        match context.writer.forget(prepared).await? {
            ForgetOutcome::Done => {
                changes += lost;
                progress = next;
            }
            ForgetOutcome::Outdated => {}
            ForgetOutcome::OnBoard => return Err(on_board(&order.event)),
        }
    }
    let had_lines = context.writer.forget_lines(event).await?;
    let was_imported = context.history.is_imported(world, sport, &id).map_err(failed)?;
    if was_imported {
        changes += HistoryImport::forget(&context.writer, world, sport, id).await?;
    }
    if changes == 0 && !had_lines {
        return Err(not_in_history(world, &order.event));
    }
    Ok(Answer::Forgotten(ForgottenAnswer {
        event_id: order.event,
        sport_key,
        changes,
        is_incomplete: progress.is_damaged,
    }))
}

fn named_sport(key: &str, context: &Context) -> Result<SportId, Failure> {
    let unknown = || Failure::bad_request(format!("there is no sport {key}: `oddsbox catalogue` lists them"));
    context.boards.catalogue().find(key).ok_or_else(unknown)
}

async fn sport_of(world: World, id: &EventId, context: &Context) -> Result<Option<SportId>, Failure> {
    let (id, context) = (id.clone(), context.clone());
    let read = tokio::task::spawn_blocking(move || find(world, &id, None, &context)).await;
    Ok(read.map_err(unavailable)??.map(|(sport, _)| sport))
}

/// Its next price would begin its history again.
fn refuse_on_board((world, sport): (World, SportId), id: &EventId, context: &Context) -> Result<(), Failure> {
    let world = context.boards.load_full(world);
    if world.sport(sport).current().get(id.as_str()).is_some() { Err(on_board(id.as_str())) } else { Ok(()) }
}

fn on_board(event: &str) -> Failure {
    let message = format!(
        "the event {event} is on the board, so its history would begin again: stop what feeds it, remove it with a line \
         {{\"type\":\"remove\",\"sport\":…,\"event\":…}}, and forget it then"
    );
    Failure::new(FailureCode::Refused, message)
}

async fn prepare(
    event: ForgottenEvent,
    mut progress: ForgetProgress,
    context: &Context,
) -> Result<(ForgetProgress, Option<PreparedForget>), Failure> {
    let history = context.history.clone();
    let prepare = move || history.prepare_forget(&event, &mut progress).map(|prepared| (progress, prepared));
    tokio::task::spawn_blocking(prepare).await.map_err(unavailable)?.map_err(failed)
}

fn unavailable(error: tokio::task::JoinError) -> Failure {
    Failure::new(FailureCode::Unavailable, error.to_string())
}

fn failed(error: HistoryError) -> Failure {
    Failure::new(FailureCode::Unavailable, error.to_string())
}
