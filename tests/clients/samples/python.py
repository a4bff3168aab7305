"""Makes the calls of The Odds API's sample programs in Python (odds, event odds, most balanced lines) and reads the fields
that they read. Written for this test, as the samples come without a licence.

Reads PAYLOAD_URL and PAYLOAD_KEY from the environment, and stops at the first failed check."""

import os

import requests

BASE = os.environ["PAYLOAD_URL"]
KEY = os.environ["PAYLOAD_KEY"]


def get(path, **params):
    response = requests.get(f"{BASE}/v4/{path}", params={"api_key": KEY, **params})
    assert response.status_code == 200, f"{path}: {response.status_code} {response.text}"
    return response


def check_usage(response):
    assert int(response.headers["x-requests-remaining"]) > 0 and int(response.headers["x-requests-used"]) > 0


def odds():
    sports = get("sports").json()
    assert "soccer_epl" in [sport["key"] for sport in sports], sports
    response = get("sports/upcoming/odds", regions="us", markets="h2h,spreads", oddsFormat="decimal", dateFormat="iso")
    events = {event["id"]: event for event in response.json()}
    assert len(events) == 6, list(events)
    found = [
        (book["key"], market["key"], outcome["name"], outcome["price"], outcome.get("point"))
        for book in events["nfl-1"]["bookmakers"]
        for market in book["markets"]
        for outcome in market["outcomes"]
    ]
    assert found == [
        ("fanduel", "h2h", "Chicago Bears", 2.45, None),
        ("fanduel", "h2h", "Green Bay Packers", 1.581, None),
        ("fanduel", "spreads", "Chicago Bears", 1.962, 3.0),
        ("fanduel", "spreads", "Green Bay Packers", 1.847, -3.0),
    ], found
    check_usage(response)


def event_odds():
    events = get("sports/basketball_nba/events").json()
    assert [event["id"] for event in events] == ["nba-2", "nba-1"], events
    response = get(
        f"sports/basketball_nba/events/{events[1]['id']}/odds",
        regions="us",
        markets="h2h_q1,player_points,player_rebounds",
        oddsFormat="american",
        dateFormat="iso",
    )
    markets = {
        (book["key"], market["key"]): [(out["name"], out.get("description"), out["price"]) for out in market["outcomes"]]
        for book in response.json()["bookmakers"]
        for market in book["markets"]
    }
    assert sorted(markets) == [
        ("draftkings", "h2h_q1"),
        ("draftkings", "player_points"),
        ("fanduel", "player_rebounds"),
    ], markets
    assert markets["draftkings", "h2h_q1"] == [("Denver Nuggets", None, -195), ("Utah Jazz", None, 160)]
    assert markets["fanduel", "player_rebounds"] == [("Over", "Nikola Jokic", -130), ("Under", "Nikola Jokic", 100)]
    check_usage(response)


def decimal(american):
    return 1 + american / 100 if american > 0 else 1 - 100 / american


def most_balanced(outcomes):
    """The point whose two prices differ least."""
    overs = {out["point"]: decimal(out["price"]) for out in outcomes if out["name"] == "Over"}
    unders = {out["point"]: decimal(out["price"]) for out in outcomes if out["name"] == "Under"}
    return min(overs.keys() & unders.keys(), key=lambda point: abs(overs[point] - unders[point]))


def most_balanced_lines():
    event = get(
        "sports/basketball_nba/events/nba-1/odds",
        regions="us",
        markets="alternate_totals,alternate_team_totals",
        oddsFormat="american",
    ).json()
    markets = {market["key"]: market["outcomes"] for market in event["bookmakers"][0]["markets"]}
    assert most_balanced(markets["alternate_totals"]) == 231
    for team, point in [(event["home_team"], 119.5), (event["away_team"], 111.5)]:
        assert most_balanced([out for out in markets["alternate_team_totals"] if out["description"] == team]) == point


if __name__ == "__main__":
    odds()
    event_odds()
    most_balanced_lines()
    print("samples in Python: every call passed")
