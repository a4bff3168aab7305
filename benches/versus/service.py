"""The odds endpoint as a team would first write it: FastAPI over SQLite. The run checks that its bytes are the same."""

import hashlib
import json
import os
import sqlite3
import threading

from fastapi import FastAPI, Header, HTTPException, Response

app = FastAPI()
local = threading.local()


def database():
    if not hasattr(local, "connection"):
        local.connection = sqlite3.connect(os.environ["VERSUS_DATABASE"])
        local.connection.row_factory = sqlite3.Row
    return local.connection


def check_key(key):
    digest = hashlib.sha256((key or "").encode()).hexdigest()
    if database().execute("SELECT 1 FROM keys WHERE hash = ?", (digest,)).fetchone() is None:
        raise HTTPException(401)


@app.get("/v1/sports/{sport_key}/odds")
def odds(
    sport_key: str,
    event_ids: str | None = None,
    bookmaker: str | None = None,
    regions: str = "us",
    limit: int = 100,
    x_api_key: str | None = Header(default=None),
):
    check_key(x_api_key)
    where, values = ["sport_key = ?"], [sport_key]
    for column, wanted in (("event_id", event_ids), ("bookmaker", bookmaker)):
        if wanted is not None:
            names = wanted.split(",")
            where.append(f"{column} IN ({','.join('?' * len(names))})")
            values.extend(names)
    if bookmaker is None:
        names = regions.split(",")
        where.append(f"region IN ({','.join('?' * len(names))})")
        values.extend(names)
    query = f"SELECT * FROM odds WHERE {' AND '.join(where)} ORDER BY position LIMIT ?"
    records = [
        {
            "id": row["id"], "sport_key": row["sport_key"], "event_id": row["event_id"], "bookmaker": row["bookmaker"],
            "market": row["market"], "format": "american", "last_update": row["last_update"],
            "outcomes": json.loads(row["outcomes"]),
        }
        for row in database().execute(query, [*values, limit])
    ]
    return Response(json.dumps(records, separators=(",", ":")), media_type="application/json")
