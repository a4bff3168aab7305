// Filters of the board: text, competition, bookmaker, and the order of the events.

import { h } from "./dom.js";

const ORDERS = {
  start: { label: "Start", compare: (one, other) => one.start.localeCompare(other.start) || one.name.localeCompare(other.name) },
  name: { label: "Name", compare: (one, other) => one.name.localeCompare(other.name) },
  favourite: { label: "Shortest price", compare: (one, other) => one.least - other.least },
  bookmakers: { label: "Most bookmakers", compare: (one, other) => other.books - one.books },
};

const option = ([value, label]) => h("option", { value }, label);

/** The controls, what they accept, and how they sort. `changed` is called when the operator changes any of them. */
export function makeFilters(changed) {
  const search = h("input", { type: "search", placeholder: "Search events  /", "aria-label": "Search events", autocomplete: "off", oninput: changed });
  const competition = h("select", { "aria-label": "Competition", onchange: changed }, option(["", "All competitions"]));
  const bookmaker = h("select", { "aria-label": "Bookmaker", onchange: changed }, option(["", "All bookmakers"]));
  const order = h("select", { "aria-label": "Order", onchange: changed }, Object.entries(ORDERS).map(([key, { label }]) => option([key, `Sort: ${label}`])));

  /** Replaces the choices of a list where they differ, and keeps what was chosen if it is still there. */
  function fill(select, first, choices) {
    const text = JSON.stringify(choices);
    if (select.dataset.choices === text) return;
    const before = select.value;
    select.dataset.choices = text;
    select.replaceChildren(option(["", first]), ...choices.map(option));
    select.value = choices.some(([value]) => value === before) ? before : "";
  }

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea, dialog");
    if (event.key !== "/" || isTyping || !search.isConnected || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    search.focus();
  });

  return {
    element: h("div", { class: "filters" }, search, competition, bookmaker, order),
    offer(competitions, books) {
      fill(competition, "All competitions", competitions.map((name) => [name, name]));
      fill(bookmaker, "All bookmakers", books);
    },
    accepts(event, group) {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const text = [...group.names, event?.title, event?.competition, event?.home_team, event?.away_team].join(" ").toLowerCase();
      const isOfCompetition = !competition.value || (event?.title ?? event?.competition) === competition.value;
      return isOfCompetition && (!bookmaker.value || group.books.has(bookmaker.value)) && words.every((word) => text.includes(word));
    },
    acceptsBook: (book) => !bookmaker.value || book === bookmaker.value,
    sorted(groups, named) {
      const keyed = groups.map((group) => ({
        group,
        start: named.get(group.id)?.commence_time ?? "",
        name: group.names[0] ?? "",
        least: Math.min(...[...group.best.values()].map(({ value }) => value)),
        books: group.books.size,
      }));
      return keyed.sort(ORDERS[order.value].compare).map(({ group }) => group);
    },
    reset() {
      search.value = competition.value = bookmaker.value = "";
    },
  };
}
