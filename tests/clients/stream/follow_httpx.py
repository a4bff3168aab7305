"""Keeps a board of prices by the stream with the PyPI package httpx-sse, through a lost connection, and compares it with
Get Odds. Reads BASE_URL and KEY of a running `oddsbox demo` from the environment, and stops at the first failed check."""

import os
import socket
import time

import httpx
from httpx_sse import connect_sse

SPORTS = ["baseball", "basketball", "mma", "tennis"]
FILTERS = {"regions": "us,uk", "odds_format": "decimal"}
DEADLINE = time.monotonic() + 120


class Board:
    """The records by id, as the events of the stream leave them, and the position of the last event with one."""

    def __init__(self):
        self.records = {}
        self.position = None
        self.kinds = []

    def apply(self, sse):
        data = sse.json()
        self.kinds.append(sse.event)
        if sse.event == "reset" or (sse.event == "hello" and not self.position):
            self.records.clear()
        self.records.update((record["id"], record) for record in data.get("records", []))
        for closed in data.get("closed", []):
            self.records.pop(closed, None)
        if sse.event == "event" and data["status"] == "removed":
            removed = (data["sport_key"], data["id"])
            kept = (record for record in self.records.values() if (record["sport_key"], record["event_id"]) != removed)
            self.records = {record["id"]: record for record in kept}
        # The id of an event without one is that of the event before on the same connection, and empty at the first.
        self.position = sse.id or self.position


def get_odds(client):
    """All records of Get Odds by id, and the position that they stand at: None if it moved on between two pages."""
    records, positions = {}, set()
    for sport in SPORTS:
        url, params = f"/v1/sports/{sport}/odds", {**FILTERS, "limit": 500}
        while url:
            response = client.get(url, params=params).raise_for_status()
            positions.add(response.headers["x-position"])
            records.update((record["id"], record) for record in response.json())
            url, params = response.links.get("next", {}).get("url"), None
    return records, positions.pop() if len(positions) == 1 else None


def without_times(records):
    return {key: {name: value for name, value in record.items() if name != "last_update"} for key, record in records.items()}


def compare(client, board):
    """Whether Get Odds stands where the board does; if it does, it has the same records."""
    records, position = get_odds(client)
    if position != board.position:
        return False
    expected, found = without_times(records), without_times(board.records)
    wrong = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    assert not wrong, f"{len(wrong)} of {len(expected)} records differ at {position}, such as {wrong[:3]}"
    assert expected
    return True


def follow(client, board, until):
    """Applies events until a beat at which `until` says so, then cuts the connection as a network does: with no word."""
    headers = {"Last-Event-ID": board.position} if board.position else {}
    params = {"sports": ",".join(SPORTS), **FILTERS}
    with connect_sse(client, "GET", "/v1/stream", params=params, headers=headers) as source:
        source.response.raise_for_status()
        is_cut = False
        try:
            for sse in source.iter_sse():
                board.apply(sse)
                assert time.monotonic() < DEADLINE, "there was no moment to compare at"
                if sse.event == "beat" and not is_cut and until():
                    source.response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
                    is_cut = True
        except httpx.TransportError:
            assert is_cut, "the service ended the stream"


def main():
    board = Board()
    with httpx.Client(base_url=os.environ["BASE_URL"], headers={"X-API-Key": os.environ["KEY"]}, timeout=40) as client:
        follow(client, board, lambda: "odds" in board.kinds and compare(client, board))
        assert "ready" in board.kinds
        before, board.kinds = board.position, []
        while not client.get("/v1/changes", params={"since": before, "sports": ",".join(SPORTS), **FILTERS}).json()["records"]:
            assert time.monotonic() < DEADLINE, "no price changed while the client was away"
            time.sleep(0.5)

        follow(client, board, lambda: compare(client, board))
        assert board.position != before and "odds" in board.kinds, board.kinds
        assert not {"snapshot", "ready", "reset"} & set(board.kinds), "it did not continue where it was"
    print(f"httpx-sse (PyPI): {len(board.records)} records are those of Get Odds, before and after a reconnection that missed changes")


if __name__ == "__main__":
    main()
