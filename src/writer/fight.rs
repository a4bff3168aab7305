//! The score of a fight, whichever way its feed reports it.

use std::sync::Arc;

use crate::model::{Contest, Event, Reason, Score, ScoreStatus};

/// A fight is at 0 to 0 until its end; then the winner has 1. Feeds report the winner by name or by points.
pub(super) fn fight_score(score: Score, event: &Event) -> Result<Score, Reason> {
    let (home, away) = (event.home(), event.away());
    if score.status != ScoreStatus::Final {
        return Ok(Score { points: Some((0, 0)), winner: None, ..score });
    }
    let by_points = match score.points {
        Some((ours, theirs)) if ours > theirs => home.cloned(),
        Some((ours, theirs)) if ours < theirs => away.cloned(),
        _ => None,
    };
    let Some(named) = score.winner.clone().or(by_points) else {
        return Ok(Score { points: Some((0, 0)), winner: None, ..score });
    };
    // Some feeds pad a name here and not there.
    let is_named = |side: &&Arc<str>| side.trim() == named.trim();
    let (winner, points) = match (home.filter(is_named), away.filter(is_named)) {
        (Some(home), _) if *home == named => (home, (1, 0)),
        (_, Some(away)) if *away == named => (away, (0, 1)),
        (Some(home), _) => (home, (1, 0)),
        (_, Some(away)) => (away, (0, 1)),
        (None, None) => return Err(Reason::BadField),
    };
    Ok(Score { points: Some(points), winner: Some(Arc::clone(winner)), ..score })
}

/// The score of a fight whose sides were renamed or swapped after its end: the winner gets the new name, and keeps the
/// point. `None` if nothing changes.
pub(super) fn renamed_winner(score: &Score, event: &Event, contest: &Contest) -> Option<Score> {
    let winner = score.winner.as_ref()?;
    let Contest::Sides { home, away } = contest else { return None };
    let is_kept = winner == home || winner == away;
    let side = if event.home() == Some(winner) { home } else { away };
    let winner = if is_kept { winner } else { side };
    let points = if winner == home { (1, 0) } else { (0, 1) };
    let renamed = Score { points: Some(points), winner: Some(Arc::clone(winner)), ..score.clone() };
    (renamed != *score).then_some(renamed)
}
