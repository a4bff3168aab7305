//! Paging: `limit`, `after` and the `Link` header.

use std::collections::BTreeMap;

use super::fixture::{EVENING, event, fields, moneyline, records, remove, strings, total};
use crate::harness::{Answer, Service};

/// The path of the next page.
fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link")?;
    let target = link.strip_prefix('<').and_then(|rest| rest.strip_suffix(r#">; rel="next""#));
    Some(target.unwrap_or_else(|| panic!("{link}")).to_owned())
}

/// One event in each of the hours 01 to 20 of a day, with two bookmakers and two markets.
fn card(ids: impl Iterator<Item = u32>) -> String {
    ids.map(|number| {
        let id = format!("m{number:02}");
        [
            event("mma", &id, &format!("2026-11-15T{number:02}:00:00Z")),
            moneyline("mma", &id, "betmgm", -110, -110),
            moneyline("mma", &id, "fanduel", -110, -110),
            total("mma", &id, "betmgm", "total_rounds", "2.5"),
        ]
        .concat()
    })
    .collect()
}

#[tokio::test]
async fn following_links_visits_everything_once_in_order() {
    let service = Service::start().await;
    service.ingest(&card(1..=20)).await;
    for (path, name, total) in [
        ("/v1/sports/mma/odds?", "id", 60),
        ("/v1/sports/mma/odds?market=moneyline&odds_format=decimal&", "id", 40),
        ("/v1/sports/mma/odds?bookmaker=fanduel&", "id", 20),
        ("/v1/sports/mma/events?", "id", 20),
        ("/v1/sports/mma/events?status=scheduled&commence_from=2026-11-15T06:00:00Z&", "id", 15),
        ("/v1/sports/mma/scores?", "event_id", 20),
        ("/v1/sports/mma/scores/?event_ids=m01,m02,m03,m04,m05&", "event_id", 5),
    ] {
        let whole = service.get(&format!("{path}limit=500")).await;
        assert_eq!((fields(&whole, name).len(), next(&whole)), (total, None), "{path}");
        for limit in [1, 7, 20] {
            let mut found = Vec::new();
            let mut at = Some(format!("{path}limit={limit}"));
            while let Some(page) = at {
                let answer = service.get(&page).await;
                let part = fields(&answer, name);
                assert!(part.len() == limit || next(&answer).is_none(), "only the last page is short");
                found.extend(part);
                at = next(&answer);
            }
            assert_eq!(found, fields(&whole, name), "{path} {limit}");
            service.advance(60).await;
        }
    }
}

#[tokio::test]
async fn bouts_have_pages_too() {
    let service = Service::start().await;
    service.ingest(&card(1..=20)).await;
    let mut found = Vec::new();
    let mut at = Some("/v1/sports/mma/odds?group=bout&limit=6".to_owned());
    while let Some(page) = at {
        let answer = service.get(&page).await;
        found.extend(strings(&answer.json()["bouts"], "home"));
        at = next(&answer);
    }
    let expected: Vec<String> = (1..=20).map(|number| format!("Home m{number:02}")).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn complete_page_has_no_link() {
    let service = Service::start().await;
    service.ingest(&card(1..=2)).await;
    for (query, has) in [("", false), ("?limit=7", false), ("?limit=6", false), ("?limit=5", true)] {
        assert_eq!(next(&service.get(&format!("/v1/sports/mma/odds{query}")).await).is_some(), has, "{query}");
    }
    let last = next(&service.get("/v1/sports/mma/odds?limit=5").await).unwrap();
    let last = service.get(&last).await;
    assert_eq!((records(&last).len(), next(&last)), (1, None));
}

#[tokio::test]
async fn the_link_keeps_the_query_and_leaves_out_the_key() {
    let service = Service::start().await;
    service.ingest(&card(1..=3)).await;
    let path = format!("/v1/sports/mma/odds?limit=2&api_key={}&regions=us%2Cuk&odds_format=decimal", service.live);
    let answer = service.send("GET", &path, &[]).await;
    let link = next(&answer).unwrap();
    assert!(!link.contains("api_key") && !link.contains(&service.live), "{link}");
    let kept = "/v1/sports/mma/odds?limit=2&regions=us%2Cuk&odds_format=decimal&after=";
    assert!(link.starts_with(kept), "{link}");
    let second = service.get(&link).await;
    assert_eq!(second.json()[0]["format"], "decimal");
    let third = next(&second).unwrap();
    assert_eq!(third.matches("after=").count(), 1, "{third}");
}

/// Walks the pages of `path`, calling `meanwhile` before each page but the first. Returns how often each id was seen.
async fn walk(
    service: &Service,
    path: &str,
    name: &str,
    mut meanwhile: impl AsyncFnMut(usize),
) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    let (mut at, mut page) = (Some(path.to_owned()), 0);
    while let Some(target) = at {
        if page > 0 {
            meanwhile(page).await;
        }
        let answer = service.get(&target).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        for id in fields(&answer, name) {
            *seen.entry(id).or_default() += 1;
        }
        (at, page) = (next(&answer), page + 1);
        assert!(page < 100, "pages without end");
    }
    seen
}

#[tokio::test]
async fn records_that_stay_are_visited_exactly_once_while_others_come_and_go() {
    for (path, name) in [
        ("/v1/sports/mma/odds?limit=4", "event_id"),
        ("/v1/sports/mma/events?limit=2", "id"),
        ("/v1/sports/mma/scores?limit=2", "event_id"),
    ] {
        let service = Service::start().await;
        service.ingest(&card((1..=20).step_by(2))).await;
        let seen = walk(&service, path, name, async |page| {
            // One visited record is removed, one is added before and one after, and the cursor's record is removed.
            let even = u32::try_from(page).unwrap() * 2;
            if page <= 6 {
                service.ingest(&card(std::iter::once(even))).await;
            }
            if page == 2 {
                service.ingest(&remove("mma", "m01")).await;
                service.ingest(&remove("mma", "m03")).await;
            }
            service.advance(30).await;
        })
        .await;
        let each = if name == "event_id" && path.contains("odds") { 3 } else { 1 };
        for number in (5..=20).step_by(2) {
            assert_eq!(seen.get(&format!("m{number:02}")), Some(&each), "{path} m{number:02} {seen:?}");
        }
        assert!(seen.values().all(|times| *times <= each), "{path} {seen:?}");
    }
}

#[tokio::test]
async fn paging_continues_when_the_last_record_was_removed() {
    let service = Service::start().await;
    service.ingest(&card(1..=3)).await;
    let first = service.get("/v1/sports/mma/odds?limit=4").await;
    assert_eq!(records(&first).last().unwrap(), "m02 betmgm moneyline");
    service.ingest(&super::fixture::closed("mma", "m02", "betmgm", "moneyline", "2026-11-14T23:38:40Z")).await;
    service.advance(30).await;
    let second = service.get(&next(&first).unwrap()).await;
    assert_eq!(records(&second)[..2], ["m02 betmgm total_rounds", "m02 fanduel moneyline"]);
}

#[tokio::test]
async fn cursor_is_valid_in_any_list() {
    let service = Service::start().await;
    service.ingest(&card(1..=3)).await;
    let after = |answer: &Answer| next(answer).unwrap().split_once("after=").unwrap().1.to_owned();
    let of_records = after(&service.get("/v1/sports/mma/odds?limit=1").await);
    let of_events = after(&service.get("/v1/sports/mma/events?limit=1").await);
    for cursor in [&of_records, &of_events] {
        let events = service.get(&format!("/v1/sports/mma/events?after={cursor}")).await;
        assert_eq!(fields(&events, "id"), ["m02", "m03"], "behind the event that the cursor names");
        let scores = service.get(&format!("/v1/sports/mma/scores?after={cursor}")).await;
        assert_eq!(fields(&scores, "event_id"), ["m02", "m03"]);
    }
    let records = service.get(&format!("/v1/sports/mma/odds?after={of_events}")).await;
    assert!(!fields(&records, "event_id").contains(&"m01".to_owned()), "an event's records are behind it");
}

#[tokio::test]
async fn cursor_encodes_any_event_id() {
    let service = Service::start().await;
    let mut lines = String::new();
    for id in ["ré&union", "a/b?c=d", "x%20y", "<z>"] {
        lines += &event("mma", id, EVENING);
        lines += &moneyline("mma", id, "betmgm", -110, -110);
    }
    service.ingest(&lines).await;
    for (path, name) in [("/v1/sports/mma/odds?limit=1", "event_id"), ("/v1/sports/mma/events?limit=1", "id")] {
        let seen = walk(&service, path, name, async |_| {}).await;
        assert_eq!((seen.len(), seen.values().sum::<usize>()), (4, 4), "{seen:?}");
    }
}
