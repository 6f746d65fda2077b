// The request that a form describes.
import { find, findAll } from "./dom.js";

const server = document.body.dataset.server;

/** Returns the request that a form describes: method, path, header fields and body. */
export function requestOf(form) {
  const request = { method: form.dataset.method, path: server + form.dataset.path, headers: {}, body: undefined };
  const query = new URLSearchParams();
  for (const { name, value, dataset } of findAll("[data-in]", form)) {
    if (dataset.in === "path") request.path = request.path.replace(`{${name}}`, encodeURIComponent(value));
    else if (dataset.in === "body") request.body = value;
    else if (value === "") continue;
    else if (dataset.in === "query") query.append(name, value);
    else request.headers[name] = value;
  }
  if (request.body !== undefined) request.headers["Content-Type"] = "application/json";
  if (query.toString() !== "") request.path += "?" + query;
  return request;
}

/** Sends a request with the key, if there is one, and returns the response, its text and how long it took. */
export async function send(request, key) {
  const headers = key === "" ? request.headers : { ...request.headers, Authorization: "Bearer " + key };
  const start = performance.now();
  const response = await fetch(request.path, {
    method: request.method, headers, body: request.body,
    cache: "no-store", credentials: "omit", redirect: "manual", signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  return { response, text, milliseconds: performance.now() - start };
}

/** Returns the request as a command. The key is a variable, so that it is not in the history of the shell. */
export function curlOf(request) {
  const parts = [`curl -i -H "Authorization: Bearer $PETSTORE_KEY"`];
  if (request.method !== "GET" && request.body === undefined) parts.push(`-X ${request.method}`);
  for (const [name, value] of Object.entries(request.headers)) parts.push(`-H ${quote(`${name}: ${value}`)}`);
  if (request.body !== undefined) parts.push(`--data-raw ${quote(request.body)}`);
  parts.push(quote(location.origin + request.path));
  return parts.join(" \\\n  ");
}

const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Fills the form with the parameters of the link to the next page (RFC 8288), and returns whether it could. */
export function takeNext(form, response) {
  const [, target] = /<([^>]*)>\s*;[^,]*\brel="next"/.exec(response.headers.get("Link"));
  const url = new URL(target, location.href);
  for (const [name, value] of url.searchParams) {
    const field = find(`[name="${CSS.escape(name)}"]`, form);
    if (field === null) return false;
    field.value = value;
  }
  return url.origin === location.origin;
}
