"""Clients from PyPI against a server that holds the files of payloads/ and nothing else: competitions, player props,
alternate lines, lay prices, regions, optional fields, futures and scores, by value.

Reads PAYLOAD_URL, PAYLOAD_KEY and NOW (the time that the payloads were filled with) from the environment, and stops at
the first failed check."""

import importlib.util
import os
import sys
import types
from datetime import datetime, timezone
from unittest import mock

import requests
from parlay_api import ParlayAPI
from the_odds import OddsApiClient
from the_odds_api_sdk import OddsAPIClient
from theoddsapi import TheOddsAPI

BASE = os.environ["PAYLOAD_URL"]
KEY = os.environ["PAYLOAD_KEY"]
NOW = int(os.environ["NOW"])
HOUR = 3600

SPORTS = ["americanfootball_nfl", "americanfootball_nfl_super_bowl_winner", "basketball_nba", "soccer_epl"]
FUTURES = "americanfootball_nfl_super_bowl_winner"

# (bookmaker, market, name, description, point): price
EPL_EU = {
    ("betfair_ex_eu", "h2h", "Everton", None, None): 3.55,
    ("betfair_ex_eu", "h2h", "Leeds United", None, None): 2.2,
    ("betfair_ex_eu", "h2h", "Draw", None, None): 3.4,
    ("pinnacle", "h2h", "Everton", None, None): 3.45,
    ("pinnacle", "h2h", "Leeds United", None, None): 2.18,
    ("pinnacle", "h2h", "Draw", None, None): 3.3,
    ("pinnacle", "spreads", "Everton", None, 0.25): 1.97,
    ("pinnacle", "spreads", "Leeds United", None, -0.25): 1.93,
    ("pinnacle", "totals", "Over", None, 2.25): 1.884,
    ("pinnacle", "totals", "Under", None, 2.25): 2.01,
}
EPL_LAY = {
    ("betfair_ex_eu", "h2h_lay", "Everton", None, None): 3.6,
    ("betfair_ex_eu", "h2h_lay", "Leeds United", None, None): 2.22,
    ("betfair_ex_eu", "h2h_lay", "Draw", None, None): 3.45,
}
NBA_POINTS = {
    ("draftkings", "player_points", "Over", "Nikola Jokic", 28.5): -105,
    ("draftkings", "player_points", "Under", "Nikola Jokic", 28.5): -125,
    ("draftkings", "player_points", "Over", "Lauri Markkanen", 21.5): -115,
    ("draftkings", "player_points", "Under", "Lauri Markkanen", 21.5): -115,
}
NBA_POINTS_US2 = {
    ("hardrockbet", "player_points", "Over", "Nikola Jokic", 29.5): -102,
    ("hardrockbet", "player_points", "Under", "Nikola Jokic", 29.5): -128,
}
NBA_ALTERNATES = {
    ("draftkings", "alternate_spreads", "Denver Nuggets", None, -4.5): -210,
    ("draftkings", "alternate_spreads", "Utah Jazz", None, 4.5): 170,
    ("draftkings", "alternate_spreads", "Denver Nuggets", None, -12.5): 150,
    ("draftkings", "alternate_spreads", "Utah Jazz", None, 12.5): -185,
    ("draftkings", "alternate_totals", "Over", None, 227.5): -160,
    ("draftkings", "alternate_totals", "Under", None, 227.5): 130,
    ("draftkings", "alternate_totals", "Over", None, 231): -112,
    ("draftkings", "alternate_totals", "Under", None, 231): -108,
    ("draftkings", "player_points_alternate", "Over", "Nikola Jokic", 19.5): -450,
    ("draftkings", "player_points_alternate", "Over", "Nikola Jokic", 34.5): 240,
}
NBA_US_MARKETS = {
    "draftkings": [
        "alternate_spreads",
        "alternate_team_totals",
        "alternate_totals",
        "h2h",
        "h2h_q1",
        "player_points",
        "player_points_alternate",
        "spreads",
        "totals",
    ],
    "fanduel": ["player_rebounds"],
}
FUTURES_US = {
    ("draftkings", "outrights", "Buffalo Bills", None, None): 600,
    ("draftkings", "outrights", "Green Bay Packers", None, None): 1400,
    ("draftkings", "outrights", "Chicago Bears", None, None): 5000,
}
# Each event of a request for the last three days: completed, and the scores of both sides.
NBA_SCORES = {
    "nba-4": (True, {"Utah Jazz": "87", "Miami Heat": "112"}),
    "nba-3": (True, {"Chicago Bulls": "104", "Toronto Raptors": "98"}),
    "nba-2": (False, {"Miami Heat": "61", "Boston Celtics": "58"}),
    "nba-1": (False, None),
}


def at(offset):
    return datetime.fromtimestamp(NOW + offset, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def equal(found, expected):
    assert found == expected, f"\n   found: {found}\nexpected: {expected}"


def raises(error, call):
    try:
        call()
    except error as caught:
        return caught
    raise AssertionError(f"{error.__name__} was expected")


def outcomes(event):
    """Each outcome of an event as it was sent, with its bookmaker and market."""
    for book in event["bookmakers"]:
        for market in book["markets"]:
            for outcome in market["outcomes"]:
                yield book, market, outcome


def prices(event):
    return {
        (book["key"], market["key"], out["name"], out.get("description"), out.get("point")): out["price"]
        for book, market, out in outcomes(event)
    }


def scores(events):
    sides = lambda event: event["scores"] and {side["name"]: side["score"] for side in event["scores"]}
    return {event["id"]: (event["completed"], sides(event)) for event in events}


def check_theoddsapi():
    TheOddsAPI.HOST = BASE
    client = TheOddsAPI(KEY)
    sports = {sport["key"]: sport for sport in client.get_sports()}
    equal(sorted(sports), SPORTS)
    equal([key for key in sports if sports[key]["has_outrights"]], [FUTURES])
    equal(sports["soccer_epl"]["description"], "English Premier League")
    every = {sport["key"]: sport["active"] for sport in client.get_sports(all="true")}
    assert every["soccer_epl"] and every["icehockey_nhl"] is False and len(every) > 100, every

    first, second = client.get_odds(sport="soccer_epl", regions="eu", markets="h2h,spreads,totals")
    equal((first["id"], first["sport_title"], first["commence_time"]), ("epl-1", "EPL", at(3 * HOUR)))
    equal(prices(first), EPL_EU)
    equal([book["title"] for book in first["bookmakers"]], ["Betfair", "Pinnacle"])
    # A bookmaker that only the payload names.
    equal([(book["key"], book["title"]) for book in second["bookmakers"]], [("harbourbet", "Harbour Bet")])
    lay = client.get_odds(sport="soccer_epl", regions="us,eu", markets="h2h_lay", eventIds="epl-1")
    equal([prices(event) for event in lay], [EPL_LAY])
    futures = client.get_odds(sport=FUTURES, regions="us", oddsFormat="american")
    equal([prices(event) for event in futures], [FUTURES_US])

    nba = {"sport": "basketball_nba", "eventId": "nba-1", "oddsFormat": "american"}
    props = client.get_event_odds(**nba, regions="us,us2", markets="player_points")
    equal(prices(props), NBA_POINTS | NBA_POINTS_US2)
    markets = "alternate_spreads,alternate_totals,player_points_alternate"
    equal(prices(client.get_event_odds(**nba, regions="us", markets=markets)), NBA_ALTERNATES)
    # A market that reads but that nobody has priced.
    equal(client.get_event_odds(**nba, regions="us", markets="player_steals")["bookmakers"], [])

    equal(scores(client.get_scores(sport="basketball_nba", daysFrom=3)), NBA_SCORES)
    assert client.get_requests_used() > 0 and client.get_requests_remaining() > 0

    refused = raises(requests.HTTPError, lambda: client.get_odds(sport="soccer_epl", regions="eu", markets="handicaps"))
    equal((refused.response.status_code, refused.response.json()["error_code"]), (422, "INVALID_MARKET"))
    unknown = raises(requests.HTTPError, lambda: client.get_odds(sport="curling_worlds", regions="eu"))
    equal((unknown.response.status_code, unknown.response.json()["error_code"]), (404, "UNKNOWN_SPORT"))
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    past = client.get_historical_odds(sport="soccer_epl", regions="eu", markets="h2h,spreads,totals", date=now)
    equal((prices(past["data"][0]), past["next_timestamp"]), (EPL_EU, None))
    print("theoddsapi (PyPI): every call passed")


def check_the_odds():
    client = OddsApiClient(api_key=KEY)
    client._config.v4_base_url = f"{BASE}/v4"
    equal([sport["key"] for sport in client.v4.get_sports()], SPORTS)
    assert len(client.v4.get_sports(all=True)) > 100

    options = {"include_links": True, "include_sids": True, "include_bet_limits": True}
    odds = client.v4.get_odds("soccer_epl", ["eu"], ["h2h", "spreads", "totals"], **options)
    equal([event["id"] for event in odds], ["epl-1", "epl-2"])
    equal(prices(odds[0]), EPL_EU)
    for book, market, outcome in outcomes(odds[0]):
        assert book["link"] is None and book["sid"] is None and market["link"] is None and market["sid"] is None
        assert outcome["link"] is None and outcome["sid"] is None and outcome["bet_limit"] is None
    narrow = client.v4.get_odds(
        "soccer_epl",
        [],
        ["h2h", "h2h_lay"],
        event_ids=["epl-1", "epl-2"],
        bookmakers=["betfair_ex_eu"],
        commence_time_from=at(0),
        commence_time_to=at(24 * HOUR),
        date_format="unix",
    )
    equal([event["commence_time"] for event in narrow], [NOW + 3 * HOUR])
    h2h = {key: price for key, price in EPL_EU.items() if key[:2] == ("betfair_ex_eu", "h2h")}
    equal(prices(narrow[0]), h2h | EPL_LAY)

    upcoming = client.v4.get_odds("upcoming", ["us", "us2"], ["h2h"], odds_format="american")
    equal([event["id"] for event in upcoming], ["nba-2", "nba-1", "epl-1", "nfl-1", "epl-2", "superbowl-1"])
    expected = {
        ("draftkings", "h2h", "Denver Nuggets", None, None): -340,
        ("draftkings", "h2h", "Utah Jazz", None, None): 270,
        ("espnbet", "h2h", "Denver Nuggets", None, None): -350,
        ("espnbet", "h2h", "Utah Jazz", None, None): 280,
    }
    equal(prices(upcoming[1]), expected)
    equal(client.v4.get_odds("soccer_epl", ["mars"], ["h2h"])["error_code"], "INVALID_REGION")
    print("the-odds (PyPI): every call passed")


def sportsdataverse_odds():
    """The module of sportsdataverse that calls The Odds API. The package imports every sport when it is imported, which
    takes some 300 MB of dependencies; this module needs none of them when it returns pandas."""
    sys.modules.setdefault("polars", mock.MagicMock())
    package = types.ModuleType("sportsdataverse")
    package.__path__ = list(importlib.util.find_spec("sportsdataverse").submodule_search_locations)
    sys.modules["sportsdataverse"] = package
    from sportsdataverse.odds import the_odds_api

    return the_odds_api


def check_sportsdataverse():
    toa = sportsdataverse_odds()
    toa.TOA_BASE = f"{BASE}/v4"
    common = {"api_key": KEY, "return_as_pandas": True}
    equal(list(toa.toa_sports(**common)["key"]), SPORTS)
    assert len(toa.toa_sports(all_sports=True, **common)) > 100

    def long(frame):
        """One row for each outcome; what pandas has for a missing value is None."""
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        key = ("bookmaker_key", "market_key", "outcome_name", "outcome_description", "outcome_point")
        return {tuple(row[part] for part in key): row["outcome_price"] for row in rows}

    flags = {"include_links": True, "include_sids": True, "include_bet_limits": True, "include_rotation_numbers": True}
    epl = {"sport": "soccer_epl", "regions": "eu", "markets": "h2h,spreads,totals", "event_ids": "epl-1", **flags}
    equal(long(toa.toa_sports_odds(odds_format="decimal", **epl, **common)), EPL_EU)
    (raw,) = toa.toa_sports_odds(**epl, api_key=KEY, return_parsed=False)
    equal((raw["home_rotation"], raw["away_rotation"]), (None, None))
    futures = toa.toa_sports_odds(sport=FUTURES, regions="us,uk", markets="outrights,outrights_lay", **common)
    lay = {key: price for key, price in long(futures).items() if key[1] == "outrights_lay"}
    equal(
        lay,
        {
            ("betfair_ex_uk", "outrights_lay", "Buffalo Bills", None, None): 640,
            ("betfair_ex_uk", "outrights_lay", "Green Bay Packers", None, None): 1600,
        },
    )
    equal(long(toa.toa_sports_odds(sport=FUTURES, markets=None, **common)), FUTURES_US)

    event = {"sport": "basketball_nba", "event_id": "nba-1"}
    props = toa.toa_event_odds(**event, regions="us,us2", markets="player_points", include_multipliers=True, **flags, **common)
    equal(long(props), NBA_POINTS | NBA_POINTS_US2)
    raw = toa.toa_event_odds(
        **event, markets="player_points", include_multipliers=True, **flags, api_key=KEY, return_parsed=False
    )
    assert "home_rotation" in raw and all(out["multiplier"] is None for _, _, out in outcomes(raw))
    alternates = "alternate_spreads,alternate_totals,player_points_alternate"
    equal(long(toa.toa_event_odds(**event, markets=alternates, **common)), NBA_ALTERNATES)
    named = toa.toa_event_odds(**event, bookmakers="hardrockbet", markets="player_points", **common)
    equal(long(named), NBA_POINTS_US2)
    dfs = toa.toa_event_odds(**event, regions="us_dfs", markets="player_points", **common)
    equal(set(dfs["bookmaker_key"]), {"prizepicks"})

    markets = toa.toa_event_markets(**event, regions="us", **common).groupby("bookmaker_key")["market_key"]
    equal({book: sorted(keys) for book, keys in markets}, NBA_US_MARKETS)

    events = toa.toa_sports_events(sport="basketball_nba", include_rotation_numbers=True, **common)
    equal(list(zip(events["id"], events["commence_time"])), [("nba-2", at(-HOUR)), ("nba-1", at(2 * HOUR))])
    assert "home_rotation" in events and events["home_rotation"].isna().all()
    later = toa.toa_sports_events(sport="basketball_nba", commence_time_from=at(0), date_format="unix", **common)
    equal(list(later["commence_time"]), [NOW + 2 * HOUR])
    results = toa.toa_sports_scores(sport="basketball_nba", days_from=3, api_key=KEY, return_parsed=False)
    equal(scores(results), NBA_SCORES)
    today = toa.toa_sports_scores(sport="basketball_nba", days_from=1, **common)
    equal(dict(zip(today["id"], today["completed"])), {"nba-3": True, "nba-2": False, "nba-1": False})
    teams = toa.toa_sports_participants(sport=FUTURES, **common)
    equal(list(teams["full_name"]), ["Buffalo Bills", "Chicago Bears", "Green Bay Packers"])
    usage = toa.toa_usage(return_as_pandas=True).iloc[0]
    assert usage["requests_remaining"] > 0 and usage["requests_used"] > 0 and usage["last_cost"] == 1, usage
    print("sportsdataverse (PyPI): every call passed")


def check_sdk():
    client = OddsAPIClient(api_key=KEY, base_url=f"{BASE}/v4/")

    def of(event):
        return {
            (book.key, market.key, out.name, out.description, out.point): out.price
            for book in event.bookmakers
            for market in book.markets
            for out in market.outcomes
        }

    equal(of(client.get_odds("soccer_epl", regions=["eu"], markets=["h2h", "spreads", "totals"])[0]), EPL_EU)
    equal(of(client.get_odds(FUTURES, regions=["us"], odds_format="american")[0]), FUTURES_US)
    props = client.get_event_odds(
        "basketball_nba", "nba-1", regions=["us2"], markets=["player_points"], odds_format="american"
    )
    equal(of(props), NBA_POINTS_US2)
    results = client.get_scores("basketball_nba", days_from=3)
    found = {
        event.id: (event.completed, event.scores and {side.name: side.score for side in event.scores}) for event in results
    }
    equal(found, NBA_SCORES)
    print("the-odds-api-sdk (PyPI): every call on the payloads passed")


def check_parlay():
    client = ParlayAPI(api_key=KEY, base_url=BASE)
    lay = client.odds("soccer_epl", regions="eu", markets=["h2h_lay"], event_ids=["epl-1"], odds_format="decimal")
    equal([prices(event) for event in lay], [EPL_LAY])
    equal([event["id"] for event in client.events("basketball_nba")], ["nba-2", "nba-1"])
    equal(scores(client.scores("basketball_nba", days_from=3)), NBA_SCORES)
    print("parlay-api (PyPI): every call on the payloads passed")


if __name__ == "__main__":
    check_theoddsapi()
    check_the_odds()
    check_sportsdataverse()
    check_sdk()
    check_parlay()
