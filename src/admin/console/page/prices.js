// Prices: how they compare, how they are written, and which is best.

/** Outcomes shown of an event before it is expanded. */
export const OUTCOMES_SHOWN = 6;

/** The profit for each unit staked. */
function profit(price) {
  if (typeof price === "string") {
    const [above, below] = price.split("/").map(Number);
    return above / below;
  }
  return price;
}

/** The same for a price in any format, to compare them. */
export function value(price, format) {
  if (format === "decimal") return price - 1;
  if (format === "american") return price >= 100 ? price / 100 : 100 / -price;
  return profit(price);
}

/** A price as people write it. */
export function written(price, format) {
  if (format === "american") return price > 0 ? `+${price}` : `\u2212${-price}`;
  if (format === "decimal") return price.toFixed(3).replace(/0$/, "");
  return price;
}

export const signed = (point, market) => (market === "spread" && point > 0 ? `+${point}` : String(point).replace("-", "\u2212"));

/** A fraction as a percentage: `0.0214` is `2.1 %`. */
export const percent = (fraction, digits = 1) => `${(fraction * 100).toFixed(digits).replace("-", "\u2212")}\u00a0%`;

/** An outcome's name, with the player or the team that it is about. */
export const outcomeName = ({ name, description }) => (description ? `${description}: ${name}` : name);

/** The best prices of each event by outcome and point, as the server derived them. */
export function bestPrices(rows) {
  const events = new Map();
  for (const row of rows) {
    let prices = events.get(row.event_id);
    if (!prices) events.set(row.event_id, (prices = new Map()));
    for (const { name, point, price, bookmaker } of row.outcomes) {
      prices.set(placeOf(outcomeName({ name, description: row.description }), point), { price, point, bookmaker, hold: row.hold });
    }
  }
  return events;
}

export const placeOf = (name, point) => `${name}\n${point ?? ""}`;

/** The records of each event: its outcomes in order, and each bookmaker's price of each. */
export function grouped(records, format) {
  const events = new Map();
  for (const record of records) {
    let event = events.get(record.event_id);
    if (!event) events.set(record.event_id, (event = { id: record.event_id, names: [], books: new Map() }));
    const prices = new Map();
    for (const outcome of record.outcomes) {
      const [name, { price, point }] = [outcomeName(outcome), outcome];
      if (!event.names.includes(name)) event.names.push(name);
      if (!prices.has(name)) prices.set(name, { price, point, value: value(price, format) });
    }
    event.books.set(record.bookmaker, { prices, updated: record.last_update });
  }
  for (const event of events.values()) judge(event);
  return events;
}

/** The best price of each outcome. Prices at different points do not compare: the most frequent point counts. */
function judge(event) {
  event.best = new Map();
  for (const name of event.names) {
    const offers = [...event.books].map(([book, { prices }]) => ({ book, ...prices.get(name) })).filter(({ value }) => value !== undefined);
    const lines = new Map();
    for (const { point } of offers) lines.set(point, (lines.get(point) ?? 0) + 1);
    const point = [...lines].sort((one, other) => other[1] - one[1])[0]?.[0];
    const alike = offers.filter((offer) => offer.point === point);
    const most = Math.max(...alike.map((offer) => offer.value));
    event.best.set(name, { point, value: most, books: new Set(alike.filter((offer) => offer.value === most).map(({ book }) => book)) });
  }
  // A long field is listed with its favourite first.
  if (event.names.length > OUTCOMES_SHOWN) event.names.sort((one, other) => event.best.get(one).value - event.best.get(other).value);
}
