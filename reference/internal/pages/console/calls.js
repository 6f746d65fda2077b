// Calls of the admin API.

/** An answer that is an error, or no answer (status 0). */
export class Failure extends Error {
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter; // seconds
  }
}

let token = ""; // in memory only
let skew = 0; // milliseconds that the clock of the server is ahead of this one

export function setToken(text) {
  token = text;
}

/** Returns the time by the clock of the server, in milliseconds since 1970. */
export const now = () => Date.now() + skew;

/** Calls the server and returns what it answers. An error is thrown as a Failure. */
export async function call(method, path) {
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers: token === "" ? {} : { Authorization: "Bearer " + token },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      signal: AbortSignal.timeout(10_000),
    });
    text = await response.text();
  } catch (error) {
    throw new Failure(0, error.name === "TimeoutError" ? "It did not answer within 10 seconds." : "It cannot be reached.");
  }
  const date = Date.parse(response.headers.get("Date") ?? "");
  if (date) skew = Math.abs(date - Date.now()) < 2000 ? 0 : date - Date.now();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // not an answer of the admin API; its status says enough
  }
  if (!response.ok) {
    throw new Failure(response.status, body?.message ?? `It answered with ${response.status}.`, Number(response.headers.get("Retry-After") ?? 0));
  }
  return body;
}
