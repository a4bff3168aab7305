//! What feeders have used of their quotas, and which events are theirs, after a restart.

use oddsbox::admin::WorldName;
use serde_json::{Value, json};

use super::fixture::{EVENING, bookmaker, event, remove};
use super::push::Pushed;

const QUOTA: [(&str, &str); 3] =
    [("ingest.bookmakers_per_day", "2"), ("ingest.events", "3"), ("ingest.events_per_day", "100")];

async fn post(pushed: &Pushed, token: &str, lines: &str) -> Value {
    pushed.post(token, "", lines.as_bytes()).await.json()
}

fn book(number: u32) -> String {
    bookmaker(&format!("book{number}"), "Book", r#"["us"]"#)
}

fn bout(number: u32) -> String {
    event("mma", &format!("e{number}"), EVENING)
}

#[tokio::test]
async fn used_quota_stays_used_after_a_restart() {
    let pushed = Pushed::start_with(&QUOTA).await;
    let token = pushed.token("greedy", WorldName::Live).await;
    let lines: String = (0..3).map(book).chain((0..4).map(bout)).collect();
    assert_eq!(post(&pushed, &token, &lines).await["accepted"], 5);
    let used = pushed.account("token/greedy").await.added;

    let pushed = pushed.restart_with(&QUOTA).await;
    assert_eq!(pushed.account("token/greedy").await.added, used, "shown before the feeder sends anything");
    for strict in ["", "?strict=true"] {
        let report = pushed.post(&token, strict, (book(8) + &bout(8)).as_bytes()).await.json();
        assert_eq!(report["rejected_by_reason"]["feeder_quota"], 2, "{strict}: {report}");
    }
    assert_eq!(pushed.account("token/greedy").await.added, used);

    // The next day brings back what is counted by the day, also after another restart.
    let pushed = pushed.restart_with(&QUOTA).await;
    pushed.service.advance(86_400).await;
    let report = post(&pushed, &token, &(book(8) + &bout(8))).await;
    assert_eq!(
        (&report["accepted"], &report["rejected_by_reason"]["feeder_quota"]),
        (&json!(1), &json!(1)),
        "{report}"
    );
    let added = pushed.account("token/greedy").await.added.expect("its quota");
    assert_eq!((added.bookmakers_today, added.bookmakers, added.events_today, added.events), (1, 3, 0, 3));

    // Events at one time are counted, so a removed one makes room.
    assert_eq!(post(&pushed, &token, &(remove("mma", "e0") + &bout(8))).await["accepted"], 2);
    let pushed = pushed.restart_with(&QUOTA).await;
    let added = pushed.account("token/greedy").await.added.expect("its quota");
    assert_eq!((added.bookmakers, added.events), (3, 3));
}

#[tokio::test]
async fn new_token_of_the_same_name_has_the_used_quota_and_the_events_of_the_old_one() {
    let pushed = Pushed::start_with(&QUOTA).await;
    let token = pushed.token("greedy", WorldName::Live).await;
    assert_eq!(post(&pushed, &token, &(0..3).map(bout).collect::<String>()).await["accepted"], 3);
    pushed.revoke("greedy").await;
    let pushed = pushed.restart_with(&QUOTA).await;
    let token = pushed.token("greedy", WorldName::Live).await;
    assert_eq!(post(&pushed, &token, &bout(3)).await["rejected_by_reason"]["feeder_quota"], 1);
    assert_eq!(post(&pushed, &token, &remove("mma", "e0")).await["accepted"], 1);
    pushed.revoke("greedy").await;
    let token = pushed.token("greedy", WorldName::Live).await;
    assert_eq!(post(&pushed, &token, &(bout(3) + &bout(4))).await["rejected_by_reason"]["feeder_quota"], 1);
}

#[tokio::test]
async fn event_keeps_its_owner_after_a_restart() {
    let pushed = Pushed::start().await;
    let (one, two) = (pushed.token("one", WorldName::Live).await, pushed.token("two", WorldName::Live).await);
    post(&pushed, &one, &bout(1)).await;
    pushed.service.ingest(&bout(2)).await;
    let mut pushed = pushed.restart_with(&[]).await;
    for _ in 0..2 {
        for number in [1, 2] {
            // Announcing it again, or changing it, does not make it one's own.
            let changed = bout(number).replace("scheduled", "live");
            let lines = bout(number) + &changed + &remove("mma", &format!("e{number}"));
            let report = post(&pushed, &two, &lines).await;
            assert_eq!(report["rejected_by_reason"]["not_own_event"], 1, "e{number}: {report}");
        }
        pushed = pushed.restart_with(&[]).await;
    }
    assert_eq!(post(&pushed, &one, &remove("mma", "e2")).await["rejected_by_reason"]["not_own_event"], 1);
    assert_eq!(post(&pushed, &one, &remove("mma", "e1")).await["accepted"], 1);
    assert_eq!(pushed.service.get("/v1/sports/mma/events/e1").await.status, 404);

    // A removed event belongs to the feeder that announces it next.
    post(&pushed, &two, &bout(1)).await;
    let pushed = pushed.restart_with(&[]).await;
    assert_eq!(post(&pushed, &one, &remove("mma", "e1")).await["rejected_by_reason"]["not_own_event"], 1);
    assert_eq!(post(&pushed, &two, &remove("mma", "e1")).await["accepted"], 1);
    pushed.service.ingest(&remove("mma", "e2")).await;
    assert_eq!(pushed.service.get("/v1/sports/mma/events/e2").await.status, 404, "the operator removes anything");
}
