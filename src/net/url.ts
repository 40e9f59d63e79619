// Normal forms of URLs, so that two spellings of one service compare equal and nothing is ever compared as a substring.

import type { Brand } from "../base/brand.js";
import type { Config } from "../config/config.js";

/** `ws://host[:port][/path]` or `wss://…` in normal form: lower-case scheme and host, no default port, no trailing slash. */
export type RelayUrl = Brand<string, "RelayUrl">;

/** `http(s)://host[:port]/path` in normal form, without userinfo, query and fragment. */
export type CloneUrl = Brand<string, "CloneUrl">;

// URL parsers strip these silently; a name that needs stripping is not the name that was signed.
const controlOrSpace = /[\x00-\x20\x7f]/;
// `https:/host`, `https:///host` and backslashes are repaired by this parser and read otherwise by git and curl: a URL
// that two programs take to different hosts is no URL here.
const plainAuthority = /^[a-z]+:\/\/[^/\\]/i;

function parse(text: string, schemes: readonly string[]): URL | undefined {
  if (text.length > 2048 || controlOrSpace.test(text)) return undefined;
  if (!plainAuthority.test(text) || text.includes("\\")) return undefined;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return undefined;
  }
  if (!schemes.includes(url.protocol) || url.hostname === "" || url.username !== "" || url.password !== "") {
    return undefined;
  }
  return url;
}

function normalPath(path: string): string {
  return withoutTrailing(path.replace(/\/{2,}/g, "/"), "/");
}

/**
 * A text without the signs it ends with. A pattern like `/\/+$/` looks at every run of signs in the text from each of its
 * places, which takes the square of its length; this looks once, from the end.
 */
export function withoutTrailing(text: string, signs: string): string {
  let end = text.length;
  while (end > 0 && signs.includes(text.charAt(end - 1))) end--;
  return end === text.length ? text : text.slice(0, end);
}

export function normalRelayUrl(text: string): RelayUrl | undefined {
  const url = parse(text, ["ws:", "wss:"]);
  if (!url) return undefined;
  return `${url.protocol}//${url.host}${normalPath(url.pathname)}` as RelayUrl;
}

export function normalCloneUrl(text: string): CloneUrl | undefined {
  const url = parse(text, ["http:", "https:"]);
  if (!url) return undefined;
  return `${url.protocol}//${url.host}${normalPath(url.pathname)}` as CloneUrl;
}

/** A service: one origin with an optional base path, whatever scheme it is spoken to with. `relay.example.com/base`. */
export type ServiceName = Brand<string, "ServiceName">;

/** From NGIT_DOMAIN: `host[:port][/base]`. */
export function serviceName(domain: string): ServiceName | undefined {
  const url = parse(`http://${domain}`, ["http:"]);
  if (url?.search !== "" || url.hash !== "") return undefined;
  return `${hostAndPort(url)}${normalPath(url.pathname)}` as ServiceName;
}

/** The names this server answers to: that of NGIT_DOMAIN first, then that of NGIT_PRIVATE_PUBLIC_ORIGIN where it is another. */
export function serviceNames(config: Pick<Config, "domain" | "privatePublicOrigin">): ServiceName[] {
  const { domain, privatePublicOrigin } = config;
  const base = domain.includes("/") ? domain.slice(domain.indexOf("/")) : "";
  const alias = privatePublicOrigin === undefined ? [] : [`${new URL(privatePublicOrigin).host}${base}`];
  return [...new Set([domain, ...alias].flatMap((text) => serviceName(text) ?? []))];
}

/** `new URL("http://…")` drops `:80` only; a service written with `:443` is the same as one written without a port. */
function hostAndPort(url: URL): string {
  return url.port === "443" || url.port === "80" ? url.hostname : url.host;
}

/** Host (without default port) and path of any http, https, ws or wss URL: the part that two spellings share. */
export function servicePart(text: string): string | undefined {
  const url = parse(text, ["http:", "https:", "ws:", "wss:"]);
  if (!url) return undefined;
  return `${hostAndPort(url)}${normalPath(url.pathname)}`;
}

/**
 * The path of an http, https, ws or wss URL below a service, still percent-encoded: `/npub1…/x.git`, or `` for the
 * service itself. Undefined when the URL is of another origin or outside the base path.
 */
export function pathBelowService(text: string, service: ServiceName): string | undefined {
  const part = servicePart(text);
  if (part === undefined) return undefined;
  if (part === service) return "";
  return part.startsWith(`${service}/`) ? part.slice(service.length) : undefined;
}

/** Host name without port, lower case; for matching a service by host. */
export function hostOfUrl(text: string): string | undefined {
  return parse(text, ["http:", "https:", "ws:", "wss:"])?.hostname;
}
