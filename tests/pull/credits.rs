//! Spending of the upstream's credits by a polled feed.

use std::time::Duration;

use oddsbox::config::FeedConfig;
use oddsbox::model::{FeedBudget, Region, Timestamp};

use super::upstream::{COST, Reply, Upstream};
use super::{MMA, account, book, feed, mma, odds, until};
use crate::harness::Service;

/// When the quotas of November are renewed: a minute into December, as the upstream's clock may be behind.
const DECEMBER: u32 = 1_796_083_260;

/// An upstream with so many credits left, and a feed that polls it.
async fn with_credits(credits: u64) -> (Upstream, FeedConfig) {
    let upstream = Upstream::start(None).await;
    upstream.set_credits(Some(credits));
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5)])]));
    let config = feed("us", &upstream, &["mma"], Region::Us);
    (upstream, config)
}

fn now(service: &Service) -> u32 {
    service.clock.now().timestamp().unix()
}

/// The time of the next poll, once it is later than now.
async fn next_poll(service: &Service) -> u32 {
    let next = || account(service, "us").upstream.and_then(|upstream| upstream.next_poll).map(Timestamp::unix);
    until("the next poll", async || next().is_some_and(|next| next > now(service))).await;
    next().expect("a time")
}

/// Advances the clock to the next poll and returns its time; `None` if the credits are used up before.
async fn step(service: &Service, upstream: &Upstream) -> Option<u32> {
    let (asked, next) = (upstream.requests().len(), next_poll(service).await);
    if used_up_until(service).is_some() {
        return None;
    }
    service.pass(u64::from(next - now(service)) + 1);
    until("a poll", async || upstream.requests().len() > asked).await;
    Some(now(service))
}

fn used_up_until(service: &Service) -> Option<u32> {
    account(service, "us").upstream.and_then(|upstream| upstream.used_up_until).map(Timestamp::unix)
}

async fn stored(service: &Service) -> Option<FeedBudget> {
    service.writer().feed_budget("us").await.expect("a writer")
}

/// The failure that this prevents: polling every minute used up a plan of 500 credits in minutes.
#[tokio::test]
async fn credits_are_spent_evenly_until_the_month_ends_and_then_those_of_the_next() {
    let (upstream, config) = with_credits(10 * COST).await;
    let service = Service::start_polling(vec![config]).await;
    let mut times = vec![now(&service)];
    while let Some(at) = step(&service, &upstream).await {
        times.push(at);
    }
    assert_eq!((times.len(), upstream.credits()), (10, Some(0)));
    let even = i64::from(DECEMBER - times[0]) / 10;
    for pair in times.windows(2) {
        let gap = i64::from(pair[1] - pair[0]);
        assert!(gap.abs_diff(even) < 60, "{gap} s, evenly {even} s");
    }
    assert_eq!(used_up_until(&service), Some(DECEMBER));
    let asked = upstream.requests().len();
    service.pass(u64::from(DECEMBER - now(&service)) - 1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(upstream.requests().len(), asked, "not before the first of the month");

    upstream.set_credits(Some(40 * COST));
    service.pass(3_601);
    until("December's first poll", async || upstream.requests().len() > asked).await;
    let next = next_poll(&service).await - now(&service);
    let even = (31 * 86_400 - 3_600) / 40;
    assert!((even - 100..=even + 100).contains(&next), "{next} s, evenly {even} s");
    assert_eq!(used_up_until(&service), None);
}

#[tokio::test]
async fn account_shows_the_plan_of_the_credits() {
    let (upstream, config) = with_credits(10 * COST).await;
    let service = Service::start_polling(vec![config.clone()]).await;
    let interval_s = u64::from(next_poll(&service).await - now(&service));
    let shown = account(&service, "us").upstream.expect("a quota");
    let plan = shown.plan.expect("a plan");
    assert_eq!((shown.remaining, shown.budget_per_day), (Some(9 * COST), None));
    assert!(plan.interval_s.abs_diff(interval_s) <= 1, "{plan:?}, {interval_s} s");
    assert_eq!(plan.credits_per_day, COST * 86_400 / plan.interval_s);
    assert_eq!(plan.resets.map(Timestamp::unix), Some(DECEMBER));

    // Without a report there is no reset, and the operator's own budget decides.
    upstream.set_credits(None);
    let config = FeedConfig { requests_per_day: Some(30), name: "uk".into(), ..config };
    let service = service.restart_polling_now(vec![config]).await;
    until("a plan", async || account(&service, "uk").upstream.is_some_and(|upstream| upstream.plan.is_some())).await;
    let shown = account(&service, "uk").upstream.expect("a quota");
    let plan = shown.plan.expect("a plan");
    assert_eq!((shown.remaining, shown.budget_per_day, plan.resets), (None, Some(30), None));
    assert_eq!((plan.credits_per_day, plan.interval_s > 60), (30, true), "{plan:?}");
}

#[tokio::test]
async fn restart_neither_spends_credits_twice_nor_polls_before_its_time() {
    let (upstream, config) = with_credits(10 * COST).await;
    let mut service = Service::start_polling(vec![config.clone()]).await;
    let began = now(&service);
    next_poll(&service).await;
    for _ in 0..4 {
        service.pass(600);
        service = service.restart_polling_now(vec![config.clone()]).await;
        let next = next_poll(&service).await;
        assert!(next > began + 86_400, "{} s after the first", next - began);
        assert_eq!(upstream.requests().len(), 1, "no poll before its time");
    }
    // A changed scope is polled without delay, as its data was never fetched.
    let other = FeedConfig { markets: vec!["h2h".to_owned()], ..config };
    let service = service.restart_polling_now(vec![other]).await;
    until("a poll", async || upstream.requests().len() == 2).await;
    let left = next_poll(&service).await;
    assert!(left > now(&service) + 86_400, "still spread over the month");
}

#[tokio::test]
async fn upstream_with_nothing_left_is_asked_for_its_quota_only_and_new_credits_are_taken_up() {
    let (upstream, config) = with_credits(COST).await;
    let service = Service::start_polling(vec![config.clone()]).await;
    until("the end", async || used_up_until(&service) == Some(DECEMBER)).await;
    for _ in 0..5 {
        service.pass(86_400);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    assert_eq!(upstream.requests().len(), 1, "{:?}", upstream.requests());

    let service = service.restart_polling_now(vec![config.clone()]).await;
    until("the question for its quota", async || upstream.requests().len() == 2).await;
    until("the end", async || used_up_until(&service) == Some(DECEMBER)).await;
    assert!(upstream.requests()[1].contains("/sports?"), "{:?}", upstream.requests());

    upstream.set_credits(Some(20_000));
    let service = service.restart_polling_now(vec![config]).await;
    until("a poll", async || upstream.requests().iter().filter(|target| target.contains("/odds")).count() == 2).await;
    assert_eq!(upstream.credits(), Some(20_000 - COST));
    until("a plan", async || used_up_until(&service).is_none()).await;
}

#[tokio::test]
async fn larger_plan_that_was_bought_shortens_the_interval() {
    let (upstream, config) = with_credits(10 * COST).await;
    let service = Service::start_polling(vec![config]).await;
    let first = next_poll(&service).await - now(&service);
    upstream.set_credits(Some(1_000 * COST));
    step(&service, &upstream).await.expect("a poll");
    let second = next_poll(&service).await - now(&service);
    assert!(first > 86_400 && second < 3_600, "{first} s, then {second} s");
}

#[tokio::test]
async fn upstream_that_reports_nothing_is_polled_at_the_interval() {
    let (upstream, config) = with_credits(0).await;
    upstream.set_credits(None);
    let service = Service::start_polling(vec![config]).await;
    assert_eq!(next_poll(&service).await - now(&service), 60);
}

/// The failure that this prevents: a process that is killed during a request forgets its cost, so a crash loop spends
/// the whole plan.
#[tokio::test]
async fn request_is_in_the_file_before_it_is_sent() {
    let (upstream, config) = with_credits(1_000).await;
    upstream.answer(MMA, Reply::Silence);
    let config = FeedConfig { requests_per_day: Some(1_000_000), ..config };
    let service = Service::start_polling(vec![config.clone()]).await;
    until("a request", async || upstream.requests().len() == 1).await;
    let first = stored(&service).await.expect("a budget");
    let service = service.restart_polling_now(vec![config]).await;
    until("a request", async || upstream.requests().len() == 2).await;
    let second = stored(&service).await.expect("a budget");
    assert!(first.spent > 0 && second.spent > first.spent, "{first:?}, then {second:?}");
}

#[tokio::test]
async fn smaller_of_the_days_budget_and_the_upstreams_credits_governs() {
    let (_upstream, config) = with_credits(1_000_000).await;
    let config = FeedConfig { requests_per_day: Some(1_000), ..config };
    let service = Service::start_polling(vec![config]).await;
    // 21 minutes of the day are left, and the same share of the budget.
    let next = next_poll(&service).await - now(&service);
    assert!((240..=600).contains(&next), "{next} s");
}

/// The failure that this prevents: what an oddsbox has left of its day was spread over the rest of the month.
#[tokio::test]
async fn quota_of_a_day_is_spent_within_that_day() {
    let (upstream, config) = with_credits(100 * COST).await;
    // The test begins 21 minutes before midnight.
    upstream.set_day_quota(1_260);
    let service = Service::start_polling(vec![config.clone()]).await;
    assert_eq!(next_poll(&service).await - now(&service), 60, "a hundred polls do not fit into 21 minutes");
    let plan = account(&service, "us").upstream.and_then(|upstream| upstream.plan).expect("a plan");
    assert_eq!(plan.limit, None);
    assert_eq!(plan.resets.map(Timestamp::unix), Some(now(&service) + 1_260));

    // With ten left they last until midnight, and the next day has new ones.
    upstream.set_credits(Some(11 * COST));
    step(&service, &upstream).await.expect("a poll");
    let next = next_poll(&service).await - now(&service);
    assert!((100..=130).contains(&next), "{next} s");
    upstream.set_credits(Some(COST));
    upstream.set_day_quota(600);
    step(&service, &upstream).await;
    until("the end of the day", async || used_up_until(&service).is_some_and(|until| until <= now(&service) + 600))
        .await;
    assert_eq!(stored(&service).await.expect("a budget").reported, None, "it says nothing of the next day");
    upstream.set_credits(Some(1_000_000));
    upstream.set_day_quota(86_400);
    let asked = upstream.requests().len();
    service.pass(3_600);
    until("the next day", async || upstream.requests().len() > asked).await;
    assert_eq!(next_poll(&service).await - now(&service), 60);
}
