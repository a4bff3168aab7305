"""Calls every tool with the official Python SDK of the Model Context Protocol.

    BASE_URL=http://… KEY=sk_live_… python client.py
"""

import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

BASE_URL, KEY = os.environ["BASE_URL"], os.environ["KEY"]
TOOLS = ["list_sports", "find_events", "get_odds", "best_prices", "fair_odds", "edges", "line_history", "service_status"]


async def data_of(client, tool, arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    answer = result.structured_content
    assert answer["age_s"] >= 0 and answer["as_of"], (tool, answer)
    return answer["data"]


async def main():
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
        async with Client(streamable_http_client(f"{BASE_URL}/mcp", http_client=http)) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == TOOLS, tools
            assert all(tool.annotations.read_only_hint for tool in tools)
            assert (await data_of(client, "service_status", {}))["status"] == "ok"
            sports = (await data_of(client, "list_sports", {}))["sports"]
            assert any(sport["key"] == "tennis" and sport["events"] for sport in sports), sports
            assert await data_of(client, "find_events", {"sport": "tennis", "limit": 5})
            odds = await data_of(client, "get_odds", {"sport": "tennis", "odds_format": "decimal", "limit": 3})
            assert len(odds) == 3 and odds[0]["outcomes"][0]["price"] > 1, odds
            assert await data_of(client, "best_prices", {"sport": "tennis", "event_ids": [odds[0]["event_id"]]})
            assert await data_of(client, "fair_odds", {"sport": "tennis", "method": "shin", "limit": 2})
            await data_of(client, "edges", {"sport": "tennis", "kind": "arbitrage"})
            lines = await data_of(client, "line_history", {"sport": "tennis", "event_id": odds[0]["event_id"]})
            assert lines["lines"], lines
            wrong = await client.call_tool("get_odds", {"sport": "quidditch"})
            assert wrong.is_error and "no such sport" in wrong.content[0].text, wrong
    print(f"mcp (Python): {len(TOOLS)} tools called")


asyncio.run(main())
