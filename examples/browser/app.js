// A table of one sport's prices that keeps itself up to date; ?sport=tennis&market=moneyline selects another.
// There is no key here: the proxy that serves this page adds it to each request.

const query = new URLSearchParams(location.search);
const filters = { sports: query.get("sport") ?? "mma", market: query.get("market") ?? "moneyline", odds_format: "decimal", include: "event" };
const [title, state, time, table] = ["title", "state", "time", "prices"].map((id) => document.getElementById(id));
const board = new Map(); // The current records by id.
let changed = new Set(); // The ids of the records that the last change of prices was about.
let position = ""; // The id of the last event that had one.
let [retryMs, silenceMaxMs] = [1000, 70_000];
let silence, frame;

function apply(kind, data) {
  if (kind === "hello") silenceMaxMs = 2000 * data.refresh_s + 10_000;
  if (kind === "reset" || (kind === "hello" && !position)) board.clear();
  if (kind === "odds") changed = new Set(data.records.map((record) => record.id));
  for (const record of data.records ?? []) board.set(record.id, record);
  for (const id of data.closed ?? []) board.delete(id);
  for (const record of kind === "event" ? board.values() : []) {
    if (record.event_id === data.id) data.status === "removed" ? board.delete(record.id) : (record.event = data);
  }
}

function connect() {
  const source = new EventSource(`/v1/stream?${new URLSearchParams({ ...filters, ...(position && { since: position }) })}`);
  const lost = () => {
    clearTimeout(silence);
    show("connection lost");
    // EventSource reconnects by itself, with Last-Event-ID, unless the response was an error, such as the proxy's 502.
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(connect, retryMs);
    retryMs = Math.min(retryMs * 2, 60_000);
  };
  const receive = ({ type, data, lastEventId }) => {
    apply(type, JSON.parse(data));
    position = lastEventId || position;
    retryMs = 1000;
    clearTimeout(silence);
    silence = setTimeout(() => { source.close(); lost(); }, silenceMaxMs);
    time.textContent = new Date().toLocaleTimeString();
    show("live");
    frame ??= requestAnimationFrame(render);
  };
  source.onerror = lost;
  for (const kind of ["hello", "snapshot", "ready", "odds", "event", "beat", "reset"]) source.addEventListener(kind, receive);
}

function show(text) {
  if (state.textContent !== text) state.textContent = text;
  document.body.classList.toggle("lost", text !== "live");
}

/** A row of cells with these texts. Names come from feeds: they are never read as HTML. */
function line(tag, texts) {
  const row = document.createElement("tr");
  row.append(...texts.map((text) => Object.assign(document.createElement(tag), { textContent: text })));
  return row;
}

function render() {
  frame = undefined;
  const books = [...new Set([...board.values()].map((record) => record.bookmaker))].sort();
  const order = ({ event, event_id }) => `${event.commence_time} ${event_id}`;
  const rows = new Map();
  for (const { id, event_id, event, bookmaker, outcomes } of [...board.values()].sort((a, b) => order(a).localeCompare(order(b)))) {
    for (const { name, point, price } of outcomes) {
      const key = JSON.stringify([event_id, name, point]);
      const texts = [event.commence_time, event.home_team ? `${event.home_team} v ${event.away_team}` : event.competition, `${name} ${point ?? ""}`];
      if (!rows.has(key)) rows.set(key, line("td", [...texts, ...books.map(() => "")]));
      const cell = rows.get(key).cells[texts.length + books.indexOf(bookmaker)];
      Object.assign(cell, { textContent: price, className: changed.has(id) ? "price changed" : "price" });
    }
  }
  table.tHead.replaceChildren(line("th", ["Start", "Event", "Outcome", ...books]));
  table.tBodies[0].replaceChildren(...rows.values());
}

title.textContent = `${filters.sports}: ${filters.market}`;
connect();
