// Follows what is published: one request at a time waits until the position of a world is another one. Nothing waits while the
// page is hidden, because browsers share few connections among all of their tabs.

import { wait } from "./server.js";

const RETRY_FIRST_MS = 500;
const RETRY_MOST_MS = 5000;

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** Calls `changed` after each publication of the world that `world` names, and `lost` when the connection is lost or back. */
export function follow(world, changed, lost) {
  let isClosed = false;
  let seen = "";
  let retryMs = RETRY_FIRST_MS;
  let waiting = new AbortController();

  function restart() {
    waiting.abort();
    waiting = new AbortController();
  }

  async function look() {
    const [asked, { signal }] = [world(), waiting];
    try {
      const { position } = await wait(`/api/position?world=${asked}&seen=${seen}`, signal);
      retryMs = RETRY_FIRST_MS;
      if (isClosed || signal.aborted) return;
      lost(false);
      if (position === seen) return;
      seen = position;
      changed();
    } catch {
      if (isClosed || signal.aborted) return;
      lost(true);
      // What was published meanwhile is not known.
      seen = "";
      await pause(retryMs);
      retryMs = Math.min(retryMs * 2, RETRY_MOST_MS);
    }
  }

  async function run() {
    while (!isClosed) {
      if (document.hidden) await new Promise((resolve) => { document.addEventListener("visibilitychange", resolve, { once: true }); });
      else await look();
    }
  }

  const hidden = () => { if (document.hidden) restart(); };
  document.addEventListener("visibilitychange", hidden);
  run();
  return {
    /** Another world is shown. */
    turn() {
      seen = "";
      restart();
    },
    close() {
      isClosed = true;
      document.removeEventListener("visibilitychange", hidden);
      waiting.abort();
    },
  };
}
