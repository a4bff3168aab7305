// Keeps a board of prices up to date by the stream, through lost connections.
//
//     ODDSBOX_KEY=sk_test_ob_... node follow.mjs 'sports=mma&odds_format=decimal'
//
// Needs nothing but Node.js 18. Prints a line for every change; ODDSBOX_URL names another service.

const base = process.env.ODDSBOX_URL ?? 'http://127.0.0.1:8080';
const silenceMaxMs = 40_000; // Twice what the service allows itself, and some.
const board = new Map();
let last;
let waitMs = 1000;

/** The events of a response, as { event, id, data }. */
async function* events(body, alive) {
  let text = '';
  for await (const bytes of body.pipeThrough(new TextDecoderStream())) {
    alive();
    text += bytes;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = Object.fromEntries(text.slice(0, end).split('\n').map((line) => line.split(/: (.*)/s)));
      text = text.slice(end + 2);
      if (fields.event) yield { ...fields, data: JSON.parse(fields.data) };
    }
  }
}

/** Applies an event to the board, which maps the id of a record to the record. */
function apply({ event, data }) {
  // Without a position to continue from, a snapshot follows.
  if (event === 'reset' || (event === 'hello' && !last)) board.clear();
  for (const record of data.records ?? []) board.set(record.id, record);
  for (const id of data.closed ?? []) board.delete(id);
  if (event === 'event' && data.status === 'removed') {
    for (const [id, record] of board) {
      if (record.event_id === data.id && record.sport_key === data.sport_key) board.delete(id);
    }
  }
}

async function follow() {
  const silence = new AbortController();
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(new Error('the stream is silent')), silenceMaxMs);
  };
  alive();
  try {
    const headers = { 'X-API-Key': process.env.ODDSBOX_KEY, ...(last && { 'Last-Event-ID': last }) };
    const response = await fetch(`${base}/v1/stream?${process.argv[2] ?? ''}`, { headers, signal: silence.signal });
    if (!response.ok) {
      const { error } = await response.json();
      if (response.status < 500 && response.status !== 429) {
        console.error(`${response.status}: ${error.message}`);
        process.exit(1);
      }
      waitMs = Number(response.headers.get('retry-after') ?? waitMs / 1000) * 1000;
      return;
    }
    for await (const event of events(response.body, alive)) {
      apply(event);
      last = event.id ?? last;
      waitMs = event.data.retry_after_s ? event.data.retry_after_s * 1000 : 1000;
      if (['ready', 'odds', 'reset', 'bye'].includes(event.event)) {
        const changed = (event.data.records?.length ?? 0) + (event.data.closed?.length ?? 0);
        console.log(`${event.event}: ${changed} changed, ${board.size} on the board`);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

for (;;) {
  await follow().catch((error) => console.error(`lost the connection: ${error.message}`));
  await new Promise((resolve) => setTimeout(resolve, waitMs * (0.8 + Math.random() * 0.4)));
  waitMs = Math.min(waitMs * 2, 60_000);
}
