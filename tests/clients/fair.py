"""Compares the fair probabilities of the service with those of the packages penaltyblog and shin, over thousands of random
markets.

    python fair.py write FILE        writes the markets as feed lines
    python fair.py compare           compares; BASE_URL and KEY are those of a server that holds them and nothing else

Both runs make the same markets from the same seed.
"""

import json
import os
import random
import sys
import time
import urllib.request

MARKETS = 4000
SEED = 20261116
BOOKMAKER = "pinnacle"
# The service rounds to 6 decimals; the packages stop their searches at about 1e-8.
WITHIN = 2e-6


def markets():
    """Decimal prices of two to eight outcomes, whose implied probabilities sum to 1.005 to 1.3."""
    rng = random.Random(SEED)
    for number in range(MARKETS):
        weights = [rng.uniform(0.02, 1) for _ in range(rng.choice([2, 2, 2, 3, 3, 3, 4, 6, 8]))]
        overround = rng.uniform(1.005, 1.3)
        implied = [weight / sum(weights) * overround for weight in weights]
        prices = [max(1.01, round(1 / probability, 3)) for probability in implied]
        if 1.002 < sum(1 / price for price in prices) < 1.5:
            yield f"m{number}", prices


def write(path):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with open(path, "w") as out:
        for event, prices in markets():
            about = {"type": "event", "sport": "soccer", "id": event, "competition": "Test",
                     "commence_time": "2099-01-01T00:00:00Z", "home": "Home", "away": "Away", "status": "scheduled"}
            outcomes = [{"name": f"O{at}", "price": price} for at, price in enumerate(prices)]
            odds = {"type": "odds", "sport": "soccer", "event": event, "bookmaker": BOOKMAKER, "market": "moneyline",
                    "last_update": now, "format": "decimal", "outcomes": outcomes}
            out.write(json.dumps(about) + "\n" + json.dumps(odds) + "\n")


def served(method):
    """The probabilities of every market by event, page by page."""
    base, key = os.environ["BASE_URL"], os.environ["KEY"]
    path = f"/v1/sports/soccer/fair?method={method}&from={BOOKMAKER}&limit=500"
    found = {}
    while path:
        request = urllib.request.Request(base + path, headers={"X-API-Key": key})
        with urllib.request.urlopen(request) as answer:
            rows, link = json.load(answer), answer.headers.get("Link", "")
        for row in rows:
            in_order = sorted(row["outcomes"], key=lambda outcome: int(outcome["name"][1:]))
            found[row["event_id"]] = ([outcome["probability"] for outcome in in_order], "fallback" in row)
        path = link.split(">")[0].lstrip("<") if 'rel="next"' in link else None
    return found


def compare():
    import penaltyblog
    import shin

    def by_penaltyblog(method):
        return lambda prices: list(penaltyblog.implied.calculate_implied(prices, method=method).probabilities)

    references = {
        "multiplicative": [("penaltyblog", by_penaltyblog("multiplicative"))],
        "additive": [("penaltyblog", by_penaltyblog("additive"))],
        "power": [("penaltyblog", by_penaltyblog("power"))],
        "shin": [("penaltyblog", by_penaltyblog("shin")), ("shin", lambda prices: list(shin.calculate_implied_probabilities(prices)))],
    }
    failed = 0
    for method, packages in references.items():
        found = served(method)
        for package, reference in packages:
            compared, replaced, worst = 0, 0, (0.0, None)
            for event, prices in markets():
                ours, is_replaced = found[event]
                theirs = [float(probability) for probability in reference(prices)]
                if is_replaced:
                    # Additive only: the package has a negative probability, or sets it to zero.
                    assert method == "additive" and min(theirs) <= 0, (event, prices, theirs)
                    replaced += 1
                    continue
                worst = max(worst, (max(abs(one - other) for one, other in zip(ours, theirs)), event))
                compared += 1
            print(f"{method:15} {package:12} {compared} markets compared, {replaced} answered by another method, "
                  f"largest difference {worst[0]:.2e}")
            failed += worst[0] > WITHIN
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2])
    else:
        compare()
