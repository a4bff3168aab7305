// The way to the server. Views are asked for with what we have of them; commands carry the session's token.

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let session = null;
const VIEWS_MAX = 200;
const views = new Map();

export const who = () => session;

async function read(response) {
  const document = await response.json().catch(() => null);
  if (response.ok) return document;
  const error = document?.error;
  throw new Refused(response.status, error?.code ?? "failed", error?.message ?? `the server answered ${response.status}`);
}

const unreachable = () => new Refused(0, "unreachable", "the server does not answer");

async function send(path, options) {
  try {
    return await fetch(path, { cache: "no-store", credentials: "same-origin", redirect: "error", ...options });
  } catch {
    throw unreachable();
  }
}

/** Does what is asked; fails as if the server were unreachable if that takes longer. */
export async function withinTime(milliseconds, act) {
  let timer;
  const tooLate = new Promise((_, reject) => {
    timer = setTimeout(() => reject(unreachable()), milliseconds);
  });
  try {
    return await Promise.race([act(), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

export async function signIn() {
  session = await read(await send("/api/session"));
  return session;
}

/** A view: its document, where its next page begins, and whether it is another than the last time. */
export async function view(path) {
  const held = views.get(path);
  const response = await send(path, { headers: held ? { "if-none-match": held.etag } : {} });
  if (response.status === 304 && held) return { ...held, isNew: false };
  const document = await read(response);
  const fresh = { document, etag: response.headers.get("etag") ?? "", next: response.headers.get("x-next-after") };
  views.delete(path);
  views.set(path, fresh);
  if (views.size > VIEWS_MAX) views.delete(views.keys().next().value);
  return { ...fresh, isNew: true };
}

/** An answer that the server may take its time for. */
export const wait = async (path, signal) => read(await send(path, { signal }));

async function post(path, body) {
  const headers = { "content-type": "application/json", "x-csrf-token": session?.csrf ?? "" };
  return read(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export const command = (name, fields = {}) => post("/api/command", { command: name, ...fields });

export async function signOut() {
  await post("/api/sign-out", {});
  session = null;
}
