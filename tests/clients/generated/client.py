"""Calls a running service with the client that openapi-generator makes from its /openapi.json. run.sh generates it.

    BASE_URL=http://… KEY=sk_live_… PYTHONPATH=DIRECTORY_OF_THE_GENERATED_CLIENT python client.py
"""

import os
import re
import time
from datetime import timedelta
from fractions import Fraction

import oddsbox_client as api
from oddsbox_client.exceptions import BadRequestException, NotFoundException, UnauthorizedException

BASE_URL, KEY = os.environ["BASE_URL"], os.environ["KEY"]


def client(key):
    configuration = api.Configuration(host=BASE_URL, api_key={"ApiKeyHeader": key})
    return api.ApiClient(configuration)


def american(decimal):
    profit = Fraction(str(decimal)) - 1
    return float(100 * profit if profit >= 1 else -100 / profit)


def check_formats(odds, as_of):
    """The same records in each format, as they were at one time."""
    records = {}
    for name in ["american", "decimal", "fractional"]:
        answer = odds.get_odds("tennis", market=["moneyline"], odds_format=name, limit=20, as_of=as_of).actual_instance
        assert all(record.format == name and record.market == "moneyline" for record in answer), answer
        records[name] = {record.id: [outcome.price for outcome in record.outcomes] for record in answer}
    assert records["decimal"] and len({tuple(of_format) for of_format in records.values()}) == 1, records
    for id, prices in records["decimal"].items():
        for price, whole, fraction in zip(prices, records["american"][id], records["fractional"][id], strict=True):
            assert isinstance(whole, int) and price > 1 and re.fullmatch(r"\d+/\d+", fraction), (price, whole, fraction)
            assert abs(float(Fraction(fraction)) + 1 - price) < 0.02 * price, (price, fraction)
            assert abs(american(price) - whole) <= 1 + 0.03 * abs(whole), (price, whole)


def next_page(headers):
    found = re.search(r'[?&]after=([0-9a-f]+)[^>]*>; rel="next"', headers.get("link", ""))
    return found and found[1]


def check_pages(events, as_of):
    whole = [event.id for event in events.list_events("tennis", limit=500, as_of=as_of)]
    pages, after = [], None
    while True:
        page = events.list_events_with_http_info("tennis", limit=3, after=after, as_of=as_of)
        assert 1 <= len(page.data) <= 3, page.data
        pages += [event.id for event in page.data]
        after = next_page(page.headers)
        if not after:
            break
    assert len(whole) > 3 and pages == whole, (pages, whole)


def check_history(history, odds, as_of):
    answer = odds.get_odds_with_http_info("tennis", odds_format="decimal", as_of=as_of)
    assert answer.headers["x-as-of"] <= as_of.strftime("%Y-%m-%dT%H:%M:%SZ"), answer.headers
    record = answer.data.actual_instance[0]
    lines = history.get_lines("tennis", record.event_id, bookmaker=record.bookmaker, market=[record.market], odds_format="decimal")
    [line] = lines.lines
    assert (line.bookmaker, line.market, line.format) == (record.bookmaker, record.market, "decimal"), line
    then = [point for point in line.points if point.at <= as_of][-1]
    assert [(o.name, o.price, o.point) for o in then.outcomes] == [(o.name, o.price, o.point) for o in record.outcomes], line
    assert line.opening.at <= then.at and len(line.opening.outcomes) == len(record.outcomes), line


def check_errors(as_of):
    try:
        api.ServiceApi(client("sk_live_ob_wrong")).list_sports()
        raise AssertionError("a wrong key was accepted")
    except UnauthorizedException as error:
        assert error.data.error.code == "authentication_failed" and error.data.error.request_id, error
    with client(KEY) as ours:
        try:
            api.EventsApi(ours).list_events("tennis", competition=["nowhere"])
            raise AssertionError("a wrong competition was accepted")
        except BadRequestException as error:
            assert (error.data.error.code, error.data.error.param) == ("invalid_parameter", "competition"), error
        try:
            api.EventsApi(ours).get_event("tennis", "nobody")
            raise AssertionError("there is no such event")
        except NotFoundException as error:
            assert error.data.error.code == "event_not_found", error
        try:
            api.OddsApi(ours).get_odds("tennis", as_of=as_of + timedelta(days=1))
            raise AssertionError("a time in the future was accepted")
        except BadRequestException as error:
            assert error.data.error.param == "as_of", error


def main():
    with client(KEY) as ours:
        service, odds, events = api.ServiceApi(ours), api.OddsApi(ours), api.EventsApi(ours)
        status = service.get_status()
        # The first publication can be a second ahead of the clock.
        while not status.history_since or status.history_since >= status.server_time:
            time.sleep(0.5)
            status = service.get_status()
        as_of = status.server_time
        assert status.status == "ok" and status.simulated and status.rate_limit.burst_per_minute > 0, status
        usage = service.get_usage()
        assert usage.kind == "production" and usage.streams.open == 0 and usage.minute.remaining > 0, usage
        assert len(usage.hours) == 24 and len(usage.days) == 31 and usage.day.used <= usage.day.limit, usage
        sports = {sport.key: sport for sport in service.list_sports().sports}
        assert sports["tennis"].active and sports["tennis"].events > 0 and sports["mma"].group == "combat", sports

        check_formats(odds, as_of)
        records = odds.get_odds("tennis", include="event", regions=[api.Region.US, api.Region.UK], limit=1).actual_instance
        event = events.get_event("tennis", records[0].event_id)
        assert records[0].event.home_team == event.home_team and "moneyline" in event.markets, (records, event)
        bouts = odds.get_odds("mma", group="bout").actual_instance
        assert isinstance(bouts, api.Bouts) and bouts.bouts[0].books[0].outcomes[0].price, bouts
        live = events.get_scores("tennis", status="live")
        assert all(score.status == "live" and score.home_team for score in live), live
        assert any(score.periods for sport in sports for score in events.get_scores(sport, limit=500)), "no score has periods"
        check_pages(events, as_of)
        check_history(api.HistoryApi(ours), odds, as_of)
        best = api.DerivedApi(ours).get_best_prices("tennis", limit=5)
        assert best[0].outcomes[0].bookmaker in best[0].bookmakers, best
        v4 = api.V4Api(ours)
        assert any(sport.key.startswith("tennis") for sport in v4.v4_list_sports(all=True))
        upcoming = v4.v4_get_upcoming_odds(regions=["us"], markets=["h2h"], include_links=True)
        assert upcoming[0].bookmakers[0].markets[0].key == "h2h", upcoming
        past = v4.v4_get_historical_odds(sport=upcoming[0].sport_key, var_date=as_of, regions=["us"])
        assert past.data[0].id and past.timestamp, past
        assert api.PublicApi(ours).get_health().status == "ok"
    check_errors(as_of)
    print("openapi-generator, Python: ok")


main()
