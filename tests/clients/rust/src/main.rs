//! Every call of the crate `the-odds-api` that this service answers, against a running `oddsbox demo`, and what it reads of
//! other markets and sports from a server that holds the files of `payloads/`.
//! Reads `BASE_URL`, `KEY`, `PAYLOAD_URL` and `PAYLOAD_KEY` from the environment, and stops at the first failed check.

use chrono::{Duration, Utc};
use the_odds_api::{DateFormat, Error, Market, OddsFormat, Region, TheOddsApiClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (base, key) = (std::env::var("BASE_URL")?, std::env::var("KEY")?);
    let client = TheOddsApiClient::builder(&key).base_url(&base).build();
    sports(&client).await?;
    odds(&client).await?;
    one_event(&client).await?;
    scores(&client).await?;
    mistakes(&base, &client).await;
    let (base, key) = (std::env::var("PAYLOAD_URL")?, std::env::var("PAYLOAD_KEY")?);
    let client = TheOddsApiClient::builder(&key).base_url(&base).build();
    props(&client).await?;
    futures_and_lay(&client).await?;
    println!("the-odds-api (Rust): every call passed");
    Ok(())
}

async fn sports(client: &TheOddsApiClient) -> the_odds_api::Result<()> {
    let sports = client.get_sports().await?;
    assert_eq!(sports.usage.requests_last, Some(0));
    assert!(sports.usage.requests_remaining.is_some() && sports.usage.requests_used.is_some());
    let has = |key: &str| sports.data.iter().any(|sport| sport.key == key && sport.active && !sport.has_outrights);
    assert!(has("mma_mixed_martial_arts") && has("boxing_boxing") && has("americanfootball_nfl"));
    assert!(sports.data.iter().any(|sport| sport.group == "Golf" && sport.has_outrights));
    let all = client.get_all_sports().await?.data;
    assert!(all.len() >= sports.data.len());
    for sport in &sports.data {
        let events = client.get_events(&sport.key).send().await?.data;
        assert!(events.iter().all(|event| event.sport_key == sport.key && event.sport_title == sport.title));
        assert!(events.iter().all(|event| event.home_team.is_none() == sport.has_outrights));
        let participants = client.get_participants(&sport.key).await?.data;
        for name in events.iter().filter_map(|event| event.home_team.as_ref()) {
            assert!(participants.iter().any(|participant| participant.full_name == *name), "{name}");
        }
    }
    Ok(())
}

async fn odds(client: &TheOddsApiClient) -> the_odds_api::Result<()> {
    let nfl = client
        .get_odds("americanfootball_nfl")
        .regions(&[Region::Us, Region::Us2, Region::Uk, Region::Au, Region::Eu])
        .markets(&[Market::H2h, Market::Spreads, Market::Totals, Market::H2hLay])
        .odds_format(OddsFormat::American)
        .date_format(DateFormat::Iso)
        .include_links(true)
        .include_sids(true)
        .include_bet_limits(true)
        .send()
        .await?;
    assert_eq!(nfl.usage.requests_last, Some(1));
    let books: Vec<_> = nfl.data.iter().flat_map(|event| &event.bookmakers).collect();
    let markets: Vec<_> = books.iter().flat_map(|book| &book.markets).collect();
    for key in ["h2h", "spreads", "totals"] {
        let of_key: Vec<_> = markets.iter().filter(|market| market.key == key).collect();
        assert!(!of_key.is_empty(), "{key}");
        assert!(of_key.iter().flat_map(|market| &market.outcomes).all(|out| out.point.is_some() == (key != "h2h")));
    }
    let prices = markets.iter().flat_map(|market| &market.outcomes).map(|outcome| outcome.price);
    assert!(prices.clone().count() > 0 && prices.clone().all(|price| price.abs() >= 100.0 && price.fract() == 0.0));
    assert!(books.iter().all(|book| book.last_update.is_some()));
    let first = nfl.data.first().expect("an event");
    let (from, to) = (first.commence_time - Duration::hours(1), first.commence_time + Duration::hours(1));
    let narrow = client
        .get_odds("americanfootball_nfl")
        .region(Region::Us)
        .bookmakers(["betmgm", "fanduel"])
        .event_ids([first.id.clone()])
        .commence_time_from(from)
        .commence_time_to(to)
        .send()
        .await?
        .data;
    assert_eq!(narrow.len(), 1);
    assert!(narrow[0].bookmakers.iter().all(|book| book.key == "betmgm" || book.key == "fanduel"));
    let upcoming = client.get_upcoming_odds().region(Region::Us).send().await?.data;
    assert!(upcoming.iter().filter(|event| event.commence_time > Utc::now()).count() <= 8 && !upcoming.is_empty());
    assert!(upcoming.is_sorted_by_key(|event| event.commence_time));
    Ok(())
}

async fn one_event(client: &TheOddsApiClient) -> the_odds_api::Result<()> {
    let sport = "boxing_boxing";
    let id = client.get_events(sport).send().await?.data.first().expect("a bout").id.clone();
    let again = client.get_events(sport).event_ids([id.clone()]).send().await?.data;
    assert_eq!(again.len(), 1);
    let regions = [Region::Us, Region::Uk, Region::Eu, Region::Au];
    let odds = client.get_event_odds(sport, &id).regions(&regions).market(Market::H2h).send().await?.data;
    assert!(odds.id == id && odds.bookmakers.iter().all(|book| book.last_update.is_none()));
    let prices = odds.bookmakers.iter().flat_map(|book| &book.markets).flat_map(|market| &market.outcomes);
    assert!(prices.map(|outcome| outcome.price).all(|price| price > 1.0));
    let markets = client.get_event_markets(sport, &id).regions(&regions).send().await?.data;
    assert_eq!(markets.id, id);
    let known: Vec<&str> = markets.bookmakers.iter().map(|book| book.key.as_str()).collect();
    assert!(odds.bookmakers.iter().all(|book| known.contains(&book.key.as_str())));
    Ok(())
}

async fn scores(client: &TheOddsApiClient) -> the_odds_api::Result<()> {
    for sport in client.get_sports().await?.data {
        let open = client.get_scores(&sport.key).send().await?.data;
        assert!(open.iter().all(|event| !event.completed));
        let recent = client.get_scores(&sport.key).days_from(3).send().await?.data;
        assert!(recent.len() >= open.len());
        for event in recent.iter().filter(|event| event.commence_time > Utc::now()) {
            assert!(event.scores.is_none() && event.last_update.is_none());
        }
        for score in recent.iter().flat_map(|event| event.scores.iter().flatten()) {
            assert!(score.score.parse::<i64>().is_ok(), "{score:?}");
        }
    }
    Ok(())
}

async fn mistakes(base: &str, client: &TheOddsApiClient) {
    let nobody = TheOddsApiClient::builder("nobody").base_url(base).build();
    assert!(matches!(nobody.get_sports().await, Err(Error::Unauthorized)));
    let unknown = client.get_odds("curling").region(Region::Us).send().await;
    assert!(matches!(unknown, Err(Error::Api { status: 404, message }) if message.contains("UNKNOWN_SPORT")));
    let market = client.get_odds("boxing_boxing").region(Region::Us).market("handicaps".into()).send().await;
    assert!(matches!(market, Err(Error::Api { status: 422, message }) if message.contains("INVALID_MARKET")));
}

/// Player props and alternate lines of one event, and which markets it has.
async fn props(client: &TheOddsApiClient) -> the_odds_api::Result<()> {
    let event = client
        .get_event_odds("basketball_nba", "nba-1")
        .regions(&[Region::Us2])
        .custom_market("player_points")
        .odds_format(OddsFormat::American)
        .include_links(true)
        .include_sids(true)
        .include_multipliers(true)
        .send()
        .await?
        .data;
    assert_eq!(event.sport_title, "NBA");
    let [book] = &event.bookmakers[..] else { panic!("{event:?}") };
    assert_eq!((&*book.key, &*book.markets[0].key), ("hardrockbet", "player_points"));
    let [over, under] = &book.markets[0].outcomes[..] else { panic!("{book:?}") };
    assert_eq!((&*over.name, over.description.as_deref()), ("Over", Some("Nikola Jokic")));
    assert_eq!((over.price, over.point, over.multiplier), (-102.0, Some(29.5), None));
    assert_eq!((&*under.name, under.price, under.point), ("Under", -128.0, Some(29.5)));

    let alternates = client.get_event_odds("basketball_nba", "nba-1").bookmakers(["draftkings"]).region(Region::Us);
    let event = alternates.custom_market("alternate_spreads").odds_format(OddsFormat::American).send().await?.data;
    let lines = event.bookmakers[0].markets[0].outcomes.iter().map(|outcome| (outcome.point, outcome.price));
    let expected = [(Some(-4.5), -210.0), (Some(4.5), 170.0), (Some(-12.5), 150.0), (Some(12.5), -185.0)];
    assert!(lines.eq(expected), "{event:?}");

    let markets = client.get_event_markets("basketball_nba", "nba-1").region(Region::Us2).send().await?.data;
    let books = markets.bookmakers.iter().map(|book| (&*book.key, &*book.markets[0].key, book.markets.len()));
    assert!(books.eq([("espnbet", "h2h", 1), ("hardrockbet", "player_points", 1)]), "{markets:?}");
    Ok(())
}

async fn futures_and_lay(client: &TheOddsApiClient) -> the_odds_api::Result<()> {
    let winner = client.get_odds("americanfootball_nfl_super_bowl_winner").region(Region::Us).send().await?.data;
    let market = &winner[0].bookmakers[0].markets[0];
    assert_eq!((&*market.key, winner[0].home_team.as_ref()), ("outrights", None));
    let prices = market.outcomes.iter().map(|outcome| (&*outcome.name, outcome.price));
    assert!(prices.eq([("Buffalo Bills", 7.0), ("Green Bay Packers", 15.0), ("Chicago Bears", 51.0)]), "{market:?}");
    let lay = client.get_odds("soccer_epl").region(Region::Eu).market(Market::H2hLay).event_ids(["epl-1"]);
    let lay = lay.send().await?.data;
    let market = &lay[0].bookmakers[0].markets[0];
    assert_eq!((&*market.key, market.outcomes[2].price), ("h2h_lay", 3.45));
    Ok(())
}
