"""Every call of the PyPI packages the-odds-api-sdk and parlay-api that this service answers, against a running
`oddsbox demo`. Reads BASE_URL and KEY from the environment, and stops at the first failed check."""

import os
from datetime import datetime, timedelta, timezone

from parlay_api import InvalidAPIKeyError, ParlayAPI, ParlayAPIError
from the_odds_api_sdk import OddsAPIClient
from the_odds_api_sdk.exceptions import OddsAPIAuthError, OddsAPINotFoundError, OddsAPIValidationError

BASE = os.environ["BASE_URL"]
KEY = os.environ["KEY"]
REGIONS = ["us", "us2", "uk", "eu", "au"]


def raises(error, call):
    try:
        call()
    except error as caught:
        return caught
    raise AssertionError(f"{error.__name__} was expected")


def check_sdk():
    client = OddsAPIClient(api_key=KEY, base_url=f"{BASE}/v4/")
    now = datetime.now(timezone.utc)
    sports = client.get_sports()
    keys = {sport.key for sport in sports}
    assert {"mma_mixed_martial_arts", "boxing_boxing", "americanfootball_nfl"} <= keys, keys
    assert all(sport.active for sport in sports)
    assert keys <= {sport.key for sport in client.get_sports(all_sports=True)}

    for sport in sports:
        events = client.get_events(sport.key)
        assert all(event.sport_key == sport.key and event.sport_title == sport.title for event in events)
        names = {participant.full_name for participant in client.get_participants(sport.key)}
        assert {event.home_team for event in events if event.home_team} <= names
        market = "outrights" if sport.has_outrights else "h2h"
        odds = client.get_odds(sport.key, regions=REGIONS, include_links=True, include_sids=True, include_bet_limits=True)
        assert {event.id for event in odds} <= {event.id for event in client.get_events(sport.key)}
        assert any(event.bookmakers for event in odds), sport.key
        for book in (book for event in odds for book in event.bookmakers):
            assert [found.key for found in book.markets] == [market] and book.last_update <= now + timedelta(minutes=1)
            assert all(out.price > 1 and out.point is None and out.link is None for out in book.markets[0].outcomes)
        for score in client.get_scores(sport.key, days_from=3):
            assert score.completed or score.commence_time < now or score.scores is None
            assert all(int(side.score) >= 0 for side in score.scores or [])

    nfl = client.get_odds("americanfootball_nfl", regions=["us"], markets=["h2h", "spreads", "totals"], odds_format="american")
    markets = [market for event in nfl for book in event.bookmakers for market in book.markets]
    assert {market.key for market in markets} == {"h2h", "spreads", "totals"}
    outcomes = [(market.key, outcome) for market in markets for outcome in market.outcomes]
    assert all(isinstance(out.price, int) and (out.point is not None) == (key != "h2h") for key, out in outcomes)
    event = nfl[0]
    narrow = client.get_odds(
        "americanfootball_nfl",
        bookmakers=["betmgm"],
        event_ids=[event.id],
        commence_time_from=event.commence_time,
        commence_time_to=event.commence_time,
    )
    assert [found.id for found in narrow] == [event.id]
    unix = client.get_odds("americanfootball_nfl", regions=["us"], date_format="unix")
    assert unix[0].commence_time.timestamp() == event.commence_time.timestamp()
    one = client.get_event_odds("americanfootball_nfl", event.id, regions=["us"], markets=["h2h", "totals"])
    assert one.id == event.id and one.bookmakers and all(book.last_update is None for book in one.bookmakers)
    upcoming = client.get_odds("upcoming", regions=["us"])
    assert 1 <= sum(found.commence_time > now for found in upcoming) <= 8

    snapshot = client.get_historical_odds("americanfootball_nfl", now, regions=["us"], markets=["h2h", "spreads"])
    assert snapshot.timestamp <= now and {found.key for book in snapshot.data[0].bookmakers for found in book.markets} == {"h2h", "spreads"}
    unix = client.get_historical_odds("americanfootball_nfl", now, regions=["us"], date_format="unix")
    assert unix.timestamp.timestamp() == snapshot.timestamp.timestamp()
    past = client.get_historical_events("americanfootball_nfl", now)
    assert event.id in {found.id for found in past.data}
    one = client.get_historical_event_odds("americanfootball_nfl", event.id, now, regions=["us"], markets=["totals"])
    assert one.data.id == event.id and one.data.bookmakers
    before = now - timedelta(days=3)
    raises(OddsAPIValidationError, lambda: client.get_historical_odds("americanfootball_nfl", before, regions=["us"]))
    raises(OddsAPINotFoundError, lambda: client.get_historical_event_odds("boxing_boxing", "nobody", now, regions=["us"]))

    raises(OddsAPIAuthError, lambda: OddsAPIClient(api_key="nobody", base_url=f"{BASE}/v4/").get_sports())
    raises(OddsAPINotFoundError, lambda: client.get_odds("curling", regions=["us"]))
    raises(OddsAPINotFoundError, lambda: client.get_event_odds("boxing_boxing", "nobody", regions=["us"]))
    raises(OddsAPIValidationError, lambda: client.get_odds("boxing_boxing"))
    raises(OddsAPIValidationError, lambda: client.get_scores("boxing_boxing", days_from=9))
    print("the-odds-api-sdk (PyPI): every call passed")


def check_parlay():
    client = ParlayAPI(api_key=KEY, base_url=BASE)
    sports = client.sports()
    assert client.last_quota.requests_last == 0 and client.last_quota.requests_remaining > 0
    fields = {"key", "group", "title", "description", "active", "has_outrights"}
    assert all(set(sport) == fields for sport in sports)
    assert len(client.sports(all_sports=True)) >= len(sports)
    odds = client.odds("mma_mixed_martial_arts", regions="us,uk", markets=["h2h", "totals"])
    assert client.last_quota.requests_last == 1 and client.last_quota.requests_used >= 1
    event = next(event for event in odds if event["bookmakers"])
    fields = {"id", "sport_key", "sport_title", "commence_time", "home_team", "away_team", "bookmakers"}
    assert set(event) == fields
    prices = [out["price"] for book in event["bookmakers"] for market in book["markets"] for out in market["outcomes"]]
    assert prices and all(isinstance(price, int) and abs(price) >= 100 for price in prices)
    named = client.odds(
        "mma_mixed_martial_arts",
        bookmakers=["betmgm", "draftkings"],
        event_ids=[event["id"]],
        odds_format="decimal",
        date_format="unix",
        commence_time_from="2020-01-01T00:00:00Z",
        commence_time_to="2099-01-01T00:00:00Z",
    )
    assert [found["id"] for found in named] == [event["id"]] and isinstance(named[0]["commence_time"], int)
    assert {book["key"] for book in named[0]["bookmakers"]} <= {"betmgm", "draftkings"}
    events = client.events("mma_mixed_martial_arts", commence_time_from="2020-01-01T00:00:00Z")
    assert event["id"] in {found["id"] for found in events}
    assert client.events("mma_mixed_martial_arts", commence_time_to="2020-01-01T00:00:00Z") == []
    scores = client.scores("mma_mixed_martial_arts", days_from=1)
    assert all(set(score) >= {"completed", "scores", "last_update"} for score in scores)

    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    past = client.historical_odds("mma_mixed_martial_arts", now, markets=["h2h"])
    assert set(past) == {"timestamp", "previous_timestamp", "next_timestamp", "data"}
    assert past["timestamp"] <= now and event["id"] in {found["id"] for found in past["data"]}

    raises(InvalidAPIKeyError, lambda: ParlayAPI(api_key="nobody", base_url=BASE).sports())
    refused = raises(ParlayAPIError, lambda: client.odds("boxing_boxing", regions="mars"))
    assert "422" in str(refused)
    print("parlay-api (PyPI): every call passed")


if __name__ == "__main__":
    check_sdk()
    check_parlay()
