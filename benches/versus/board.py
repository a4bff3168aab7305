"""A live world of any size as feed lines: events of sixty records, twenty bookmakers and three markets each."""

import datetime
import json

SPORT = "american_football"
BOOKS = [f"book{number:02}" for number in range(20)]
MARKETS = ["moneyline", "spread", "total_points"]
RECORDS_PER_EVENT = len(BOOKS) * len(MARKETS)
REGIONS = ["us", "uk", "eu", "au"]
HOME, AWAY = "Harbour City Gulls", "North Valley Bisons"


def time(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def event_id(number):
    return f"{number * 0x9E3779B97F4A7C15:032x}"[-32:]


def bookmakers():
    for number, key in enumerate(BOOKS):
        yield {"type": "bookmaker", "key": key, "title": key.title(), "regions": [REGIONS[number % 4]]}


def event(number, start):
    return {
        "type": "event", "sport": SPORT, "id": event_id(number), "competition": "National League",
        "commence_time": time(start + 86_400 + number * 60), "home": HOME, "away": AWAY, "status": "scheduled",
    }


def odds(number, start, turn=0):
    """The prices of one event; another turn gives other prices."""
    for book_number, book in enumerate(BOOKS):
        for market in MARKETS:
            point = None if market == "moneyline" else 3.5
            names = ["Over", "Under"] if market == "total_points" else [HOME, AWAY]
            outcomes = [
                {"name": name, "price": -105 - (turn * 7 + book_number * 3 + side * 11) % 60,
                 "point": -point if point and side == 1 and market == "spread" else point}
                for side, name in enumerate(names)
            ]
            yield {
                "type": "odds", "sport": SPORT, "event": event_id(number), "bookmaker": book, "market": market,
                "last_update": time(start + turn), "format": "american", "outcomes": outcomes,
            }


def write(path, records, start):
    """Writes a file of feed lines and returns the number of events in it."""
    events = max(1, records // RECORDS_PER_EVENT)
    with open(path, "w", encoding="utf-8") as out:
        for line in bookmakers():
            out.write(json.dumps(line) + "\n")
        for number in range(events):
            out.write(json.dumps(event(number, start)) + "\n")
            for line in odds(number, start):
                out.write(json.dumps(line) + "\n")
    return events
