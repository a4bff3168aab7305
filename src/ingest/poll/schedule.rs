//! The schedule of a feed: one task for each resource that it polls, and the time at which each is due.

use super::competitions::PolledCompetition;
use super::plan::Demand;
use crate::clock::Moment;
use crate::model::{EventId, SportId};

/// Polls of a sport that are due within this belong to one round.
const ROUND_GAP_MS: u64 = 1_000;
/// What scores of the last day cost where the upstream does not say so.
const SCORES_COST: u64 = 2;

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollSubject {
    /// The list of competitions.
    Competitions,
    Odds,
    Scores,
    /// The list of a competition's events.
    Events,
    /// The odds of one event.
    EventOdds,
}

impl PollSubject {
    /// Lists cost nothing.
    fn is_list(self) -> bool {
        matches!(self, PollSubject::Competitions | PollSubject::Events)
    }

    fn has_prices(self) -> bool {
        matches!(self, PollSubject::Odds | PollSubject::EventOdds)
    }
}

/// What a task is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskId {
    pub(super) subject: PollSubject,
    /// `None` for the list of competitions.
    pub(super) competition: Option<PolledCompetition>,
    /// The event, for the odds of one.
    pub(super) event: Option<EventId>,
}

impl TaskId {
    pub(super) const COMPETITIONS: TaskId =
        TaskId { subject: PollSubject::Competitions, competition: None, event: None };

    fn of(subject: PollSubject, competition: &PolledCompetition) -> Self {
        TaskId { subject, competition: Some(competition.clone()), event: None }
    }

    fn of_event(competition: &PolledCompetition, event: &EventId) -> Self {
        let (competition, event) = (Some(competition.clone()), Some(event.clone()));
        TaskId { subject: PollSubject::EventOdds, competition, event }
    }

    /// The key of its competition; empty for the list of them.
    pub(super) fn key(&self) -> &str {
        self.competition.as_ref().map_or("", |competition| &competition.key)
    }

    fn sport(&self) -> Option<SportId> {
        self.competition.as_ref().map(|competition| competition.sport)
    }
}

/// A request that comes again and again.
#[derive(Debug)]
struct PollTask {
    id: TaskId,
    due_ms: u64,
    /// The event comes within the horizon at this time.
    from_ms: u64,
    /// What it cost when it was last sent; before that, the most that it can cost.
    cost: u64,
    cost_max: u64,
    is_in_flight: bool,
    /// Whether there was nothing to ask for: scores of a competition without an event on.
    is_idle: bool,
    /// How many markets at the end of the list are left out, to find the one that the upstream rejects.
    left_out: usize,
}

impl PollTask {
    fn new(id: TaskId, cost: u64, now: Moment) -> Self {
        let is_idle = id.subject == PollSubject::Scores;
        let (due_ms, from_ms) = (now.mono_ms, now.mono_ms);
        PollTask { id, due_ms, from_ms, cost, cost_max: cost, is_in_flight: false, is_idle, left_out: 0 }
    }

    /// What it may cost when it is sent next. An empty answer costs nothing, and the next one may not be empty.
    fn reserve(&self) -> u64 {
        match self.id.subject {
            PollSubject::EventOdds => self.cost.max(self.cost_max),
            PollSubject::Odds | PollSubject::Scores if self.cost == 0 => self.cost_max,
            _ => self.cost,
        }
    }
}

/// What is polled of a competition.
#[derive(Clone, Debug)]
pub(super) struct PolledResources {
    pub(super) competition: PolledCompetition,
    /// What its odds cost; zero if they are not polled.
    pub(super) odds_cost: u64,
    pub(super) has_scores: bool,
    pub(super) has_event_markets: bool,
}

/// An event whose odds are polled, and when that begins.
#[derive(Clone, Debug)]
pub(super) struct PolledEvent {
    pub(super) id: EventId,
    pub(super) from_ms: u64,
}

/// The tasks of a feed.
#[derive(Debug, Default)]
pub(super) struct PollSchedule {
    tasks: Vec<PollTask>,
    /// After a failure, no request is sent before this.
    held_until_ms: u64,
}

impl PollSchedule {
    fn find(&self, id: &TaskId) -> Option<&PollTask> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    fn change(&mut self, id: &TaskId, change: impl FnOnce(&mut PollTask)) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == *id) {
            change(task);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn has(&self, id: &TaskId) -> bool {
        self.find(id).is_some()
    }

    /// What a task may cost when it is sent next.
    pub(super) fn reserve(&self, id: &TaskId) -> u64 {
        self.find(id).map_or(0, PollTask::reserve)
    }

    pub(super) fn set_cost(&mut self, id: &TaskId, cost: u64) {
        self.change(id, |task| task.cost = cost);
    }

    /// The most that a task can cost, where that has changed: fewer markets are requested.
    pub(super) fn set_cost_max(&mut self, id: &TaskId, cost: u64) {
        self.change(id, |task| {
            task.cost_max = cost;
            task.cost = task.cost.min(cost);
        });
    }

    pub(super) fn set_due(&mut self, id: &TaskId, due_ms: u64) {
        self.change(id, |task| task.due_ms = due_ms);
    }

    /// Requests again at a time whatever counts as in flight.
    pub(super) fn release_in_flight(&mut self, due_ms: u64) {
        for task in self.tasks.iter_mut().filter(|task| task.is_in_flight) {
            (task.is_in_flight, task.due_ms) = (false, due_ms);
        }
    }

    pub(super) fn set_in_flight(&mut self, id: &TaskId, is_in_flight: bool) {
        self.change(id, |task| task.is_in_flight = is_in_flight);
    }

    pub(super) fn set_idle(&mut self, id: &TaskId, is_idle: bool) {
        self.change(id, |task| task.is_idle = is_idle);
    }

    pub(super) fn is_idle(&self, id: &TaskId) -> bool {
        self.find(id).is_some_and(|task| task.is_idle)
    }

    pub(super) fn left_out(&self, id: &TaskId) -> usize {
        self.find(id).map_or(0, |task| task.left_out)
    }

    pub(super) fn leave_out(&mut self, id: &TaskId, count: usize) {
        self.change(id, |task| task.left_out = count);
    }

    pub(super) fn hold_until(&mut self, until_ms: u64) {
        self.held_until_ms = until_ms;
    }

    pub(super) fn is_held(&self, now: Moment) -> bool {
        self.held_until_ms > now.mono_ms
    }

    /// The task that is due first and not sent yet, and when.
    pub(super) fn next(&self) -> Option<(TaskId, u64)> {
        let waiting = self.tasks.iter().filter(|task| !task.is_in_flight);
        waiting.min_by_key(|task| task.due_ms).map(|task| (task.id.clone(), task.due_ms.max(self.held_until_ms)))
    }

    pub(super) fn first_odds(&self) -> Option<TaskId> {
        self.tasks.iter().find(|task| task.id.subject == PollSubject::Odds).map(|task| task.id.clone())
    }

    /// Whether credits that do not suffice for a task count as used up: those for odds do, else those for events.
    pub(super) fn is_main(&self, id: &TaskId) -> bool {
        match id.subject {
            PollSubject::Odds => true,
            PollSubject::EventOdds => self.first_odds().is_none(),
            _ => false,
        }
    }

    /// When the list of competitions is requested next.
    pub(super) fn list_due_ms(&self) -> Option<u64> {
        self.find(&TaskId::COMPETITIONS).map(|task| task.due_ms)
    }

    /// Lets no request that costs credits be sent before a time.
    pub(super) fn put_off(&mut self, until_ms: u64) {
        for task in self.tasks.iter_mut().filter(|task| !task.id.subject.is_list()) {
            task.due_ms = task.due_ms.max(until_ms);
        }
    }

    /// Lets nothing of a competition be requested before a time; it costs nothing until then.
    pub(super) fn suspend(&mut self, key: &str, until_ms: u64) {
        for task in self.tasks.iter_mut().filter(|task| task.id.key() == key) {
            task.due_ms = task.due_ms.max(until_ms);
            task.cost = 0;
        }
    }

    /// Whether prices of a sport are requested now or due in the same round, other than those of one task.
    pub(super) fn is_more_due(
        &self,
        sport: SportId,
        other_than: Option<&TaskId>,
        interval_ms: u64,
        now: Moment,
    ) -> bool {
        let soon_ms = now.mono_ms.saturating_add(ROUND_GAP_MS.min(interval_ms / 2));
        let mut prices =
            self.tasks.iter().filter(|task| task.id.subject.has_prices() && task.id.sport() == Some(sport));
        prices.any(|task| {
            let is_soon = task.is_in_flight || task.due_ms.max(self.held_until_ms) <= soon_ms;
            is_soon && other_than != Some(&task.id)
        })
    }

    /// What one request of each task costs together, without those that there is no reason for now.
    pub(super) fn demand(&self, now: Moment) -> Demand {
        let mut demand = Demand::default();
        for task in self.tasks.iter().filter(|task| !task.is_idle && task.from_ms <= now.mono_ms) {
            match task.id.subject {
                PollSubject::Odds => demand.odds += task.cost,
                PollSubject::EventOdds => demand.event_odds += task.cost,
                PollSubject::Scores => demand.scores += task.cost,
                PollSubject::Competitions | PollSubject::Events => {}
            }
        }
        demand
    }

    /// What the next request may cost.
    pub(super) fn next_cost(&self) -> u64 {
        self.tasks.iter().map(PollTask::reserve).max().unwrap_or(0)
    }

    /// What the requests that are in flight may cost.
    pub(super) fn cost_in_flight(&self) -> u64 {
        self.tasks.iter().filter(|task| task.is_in_flight).map(PollTask::reserve).sum()
    }

    /// Brings the tasks in line with the competitions: those that stay keep their time, new ones are due at once.
    pub(super) fn plan(&mut self, is_listed: bool, resources: &[PolledResources], now: Moment) {
        let mut tasks = std::mem::take(&mut self.tasks);
        let mut planned = |id: TaskId, cost: u64| {
            let known = tasks.iter().position(|task| task.id == id);
            known.map_or_else(|| PollTask::new(id, cost, now), |at| tasks.swap_remove(at))
        };
        let mut all = Vec::new();
        if is_listed {
            all.push(planned(TaskId::COMPETITIONS, 0));
        }
        for PolledResources { competition, odds_cost, has_scores, has_event_markets } in resources {
            if *odds_cost > 0 {
                all.push(planned(TaskId::of(PollSubject::Odds, competition), *odds_cost));
            }
            if *has_scores {
                all.push(planned(TaskId::of(PollSubject::Scores, competition), SCORES_COST));
            }
            if *has_event_markets {
                all.push(planned(TaskId::of(PollSubject::Events, competition), 0));
            }
        }
        // Events of a competition that stays are those of its last list.
        let has_events = |task: &PollTask| {
            let mut kept = resources.iter().filter(|resources| resources.has_event_markets);
            task.id.subject == PollSubject::EventOdds
                && kept.any(|resources| task.id.competition.as_ref() == Some(&resources.competition))
        };
        all.extend(tasks.into_iter().filter(has_events));
        self.tasks = all;
    }

    /// Brings the events of a competition in line with its list.
    pub(super) fn plan_events(
        &mut self,
        competition: &PolledCompetition,
        events: &[PolledEvent],
        cost: u64,
        now: Moment,
    ) {
        let is_listed = |task: &PollTask| {
            let is_own = task.id.subject == PollSubject::EventOdds && task.id.key() == &*competition.key;
            !is_own || events.iter().any(|event| Some(&event.id) == task.id.event.as_ref())
        };
        self.tasks.retain(is_listed);
        for event in events {
            let id = TaskId::of_event(competition, &event.id);
            if !self.has(&id) {
                self.tasks.push(PollTask::new(id.clone(), cost, now));
            }
            self.change(&id, |task| {
                task.from_ms = event.from_ms;
                task.due_ms = task.due_ms.max(event.from_ms);
            });
        }
    }

    /// Drops the task of an event that the upstream does not have.
    pub(super) fn drop_event(&mut self, id: &TaskId) {
        self.tasks.retain(|task| task.id != *id || id.subject != PollSubject::EventOdds);
    }
}
