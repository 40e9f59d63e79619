// What another server has: asked by our own requests, `info/refs`, then `ls-refs` where protocol 2 is spoken. Redirects are
// followed here and nowhere else, every hop through the outbound guard. The answers are read strictly, because a stranger
// wrote them: whatever is not git's is `undefined`. purgatory.md "Hunting", Fetch; threats.md rows 4 and 7.

import type { Clock } from "../base/clock.js";
import { delimiterPkt, encodePkt, flushPkt, lineOf, listPkts, type Pkt, PktError } from "../git/pkt-line.js";
import type { DialFailureCode } from "../net/failure.js";
import type { Guard, GuardedUrl } from "../net/guard.js";
import { followRedirects, type HttpOptions, httpRequest } from "../net/http.js";
import { type CloneUrl, servicePart } from "../net/url.js";
import { formatOf, isOid, type ObjectFormat, type Oid } from "../nostr/nip34.js";
import { spellingsToTry } from "./core/fetch-plan.js";
import type { FetchFailureCode } from "./core/messages.js";

interface RemoteRefs {
  /** Everything that is named, peeled tags included. */
  readonly ids: ReadonlySet<Oid>;
  /** By name, as it was written: a stranger's text. */
  readonly refs: ReadonlyMap<string, Oid>;
}

type RemoteAdvertisement =
  /** Refs came with it. */
  | ({ readonly type: "refs" } & RemoteRefs)
  /** Protocol 2: refs are told to those who ask with `ls-refs`. */
  | { readonly type: "ask-ls-refs"; readonly format: ObjectFormat };

interface LookUpParts {
  /** How our repository names its objects: one with other names has nothing for us. */
  readonly format: ObjectFormat;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly plainHosts: PlainHosts;
  readonly totalMs: number;
  readonly idleMs: number;
  readonly maxRedirects: number;
  /** Leave for one more connection to that host. */
  readonly mayConnect: (host: string) => Promise<boolean>;
  /** GRASP-08: who we are, for a repository's root URL there; nothing for hosts that are not to know. Absent on public servers. */
  readonly authorization?: OwnAuthorization | undefined;
  readonly signal: AbortSignal;
}

/** The header for a repository's root URL, or nothing where that host is not to have one. */
export type OwnAuthorization = (root: string) => string | undefined;

/**
 * Our own signature goes to the hosts that the announcements of a repository name, and to no others: it is asked for again at
 * every hop, so that a redirect carries it nowhere (GRASP-08 "Sync").
 */
export function authorizationFor(clone: readonly string[], sign: (root: string) => string): OwnAuthorization {
  const places = new Set(clone.flatMap((url) => placesOf(url)));
  return (root) => {
    const [place] = placesOf(root);
    return place !== undefined && places.has(place) ? sign(root) : undefined;
  };
}

/** Scheme, host and port as they are written; what is announced without TLS may be asked with it, never the other way round. */
function placesOf(url: string): string[] {
  const host = servicePart(url)?.split("/")[0];
  if (host === undefined) return [];
  return /^https:/i.test(url) ? [`https://${host}`] : [`http://${host}`, `https://${host}`];
}

export type LookUp =
  | {
      readonly ok: true;
      readonly url: GuardedUrl;
      readonly advertised: ReadonlySet<Oid>;
      readonly refs: RemoteRefs["refs"];
    }
  | { readonly ok: false; readonly code: FetchFailureCode };

const maxAnswerBytes = 16 * 2 ** 20;
const agent = "git/2.40 (holdfast)";

const failed = (code: FetchFailureCode): LookUp => ({ ok: false, code });

/** https first, also where an announcement wrote http; plain hosts are remembered, so that this costs them one look. */
export async function lookUp(cloneUrl: CloneUrl, parts: LookUpParts): Promise<LookUp> {
  const { host } = new URL(cloneUrl);
  const isPlain = parts.plainHosts.has(host);
  const spellings = isPlain ? [cloneUrl] : spellingsToTry(cloneUrl);
  let last = failed("bad-url");
  for (const [index, spelling] of spellings.entries()) {
    if (index > 0 && !(await parts.mayConnect(new URL(spelling).hostname))) return failed("cancelled");
    last = await askOne(spelling, parts);
    const isLast = index === spellings.length - 1;
    if (last.ok && index > 0) parts.plainHosts.add(host);
    if (last.ok || isLast || !mayBePlain(last.code)) return last;
  }
  return last;
}

/** What a host says that does not speak https at that port. A name that does not exist has no other spelling. */
const mayBePlain = (code: FetchFailureCode): boolean =>
  ["tls", "refused", "reset", "timeout", "certificate", "bad-response", "not-git", "http-status"].includes(code);

async function askOne(spelling: CloneUrl, parts: LookUpParts): Promise<LookUp> {
  // Counted at the guard: a redirect to a name that does not exist must not be blamed on the host that sent it.
  let hops = 0;
  const answer = await followRedirects(`${spelling}${infoRefsSuffix}`, {
    guard: (url) => {
      hops++;
      return parts.guard(url);
    },
    maxRedirects: parts.maxRedirects,
    request: (url) => {
      const root = url.href.endsWith(infoRefsSuffix) ? url.href.slice(0, -infoRefsSuffix.length) : undefined;
      const headers = { "git-protocol": "version=2", "user-agent": agent, ...ownHeader(parts, root) };
      return httpRequest(url, { ...httpOptions(parts), headers });
    },
    mayConnect: (url) => parts.mayConnect(url.hostname),
  });
  const blame = (code: FetchFailureCode): LookUp => failed(hops > 1 ? "redirect-failed" : code);
  if (!answer.ok) return blame(parts.signal.aborted ? "cancelled" : answer.code);
  if (answer.status !== 200) return blame(codeOfStatus(answer.status));
  if (!isType(answer.headers["content-type"], advertisementType)) return blame("not-git");
  const advertisement = readAdvertisement(answer.body);
  if (!advertisement || !answer.url.href.endsWith(infoRefsSuffix)) return blame("not-git");
  // What redirects led to is checked again under its own name: git dials it next.
  const base = await parts.guard(answer.url.href.slice(0, -infoRefsSuffix.length));
  if (!base.ok) return blame(base.code);
  const hasOtherFormat = ({ ids }: RemoteRefs): boolean => [...ids].some((id) => formatOf(id) !== parts.format);
  const found = ({ ids, refs }: RemoteRefs): LookUp => ({ ok: true, url: base.url, advertised: ids, refs });
  if (advertisement.type === "refs")
    return hasOtherFormat(advertisement) ? blame("other-format") : found(advertisement);
  if (advertisement.format !== parts.format) return blame("other-format");
  if (!(await parts.mayConnect(base.url.hostname))) return failed("cancelled");
  const listed = await askLsRefs(base.url, parts);
  return "code" in listed ? blame(listed.code) : found(listed);
}

async function askLsRefs(
  base: GuardedUrl,
  parts: LookUpParts,
): Promise<RemoteRefs | { readonly code: FetchFailureCode }> {
  const target = await parts.guard(`${base.href}/git-upload-pack`);
  if (!target.ok) return { code: target.code };
  const headers = {
    "git-protocol": "version=2",
    "content-type": lsRefsTypes.request,
    accept: lsRefsTypes.answer,
    "user-agent": agent,
    ...ownHeader(parts, base.href),
  };
  const answer = await httpRequest(target.url, { ...httpOptions(parts), headers, body: lsRefsQuestion(parts.format) });
  if (!answer.ok) return { code: parts.signal.aborted ? "cancelled" : answer.code };
  if (answer.status !== 200) return { code: codeOfStatus(answer.status) };
  const listed = isType(answer.headers["content-type"], lsRefsTypes.answer) ? readLsRefs(answer.body) : undefined;
  return listed ?? { code: "not-git" };
}

function ownHeader({ authorization }: LookUpParts, root: string | undefined): Readonly<Record<string, string>> {
  const value = root === undefined ? undefined : authorization?.(root);
  return value === undefined ? {} : { authorization: value };
}

const httpOptions = ({ clock, totalMs, idleMs, signal }: LookUpParts): HttpOptions => ({
  clock,
  totalMs,
  idleMs,
  maxBodyBytes: maxAnswerBytes,
  signal,
});

const isType = (value: string | undefined, type: string): boolean => value?.split(";")[0]?.trim() === type;

/** Busy, closed or broken says nothing of what is there; 404 and the like say that it is no repository. */
const codeOfStatus = (status: number): DialFailureCode | "not-git" =>
  [401, 403, 408, 429].includes(status) || status >= 500 ? "http-status" : "not-git";

const rememberMs = 3_600_000;
const maxHosts = 1_000;

/**
 * Hosts that were found to speak http only, remembered for an hour: each look at https would cost one of the thirty
 * connections a minute. What is fetched is named by its hash, so nothing rests on the scheme.
 */
export class PlainHosts {
  readonly #until = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  has(host: string): boolean {
    return (this.#until.get(host) ?? 0) > this.clock.monotonicMs();
  }

  add(host: string): void {
    this.#until.delete(host);
    this.#until.set(host, this.clock.monotonicMs() + rememberMs);
    const [oldest] = this.#until.keys();
    if (this.#until.size > maxHosts && oldest !== undefined) this.#until.delete(oldest);
  }
}

/** As many as 16 MiB of real lines are; shorter ones name nothing. */
const maxLines = 400_000;

const infoRefsSuffix = "/info/refs?service=git-upload-pack";
const advertisementType = "application/x-git-upload-pack-advertisement";
const lsRefsTypes = {
  request: "application/x-git-upload-pack-request",
  answer: "application/x-git-upload-pack-result",
} as const;

/** Only what states and pull requests name: forges keep a ref for every pull request they ever had. */
export function lsRefsQuestion(format: ObjectFormat): Buffer {
  const prefixes = ["HEAD", "refs/heads/", "refs/tags/", "refs/nostr/"].map((name) => `ref-prefix ${name}\n`);
  return Buffer.concat([
    encodePkt("command=ls-refs\n"),
    encodePkt(`object-format=${format}`),
    delimiterPkt,
    ...["peel\n", ...prefixes].map((line) => encodePkt(line)),
    flushPkt,
  ]);
}

export function readAdvertisement(body: Buffer): RemoteAdvertisement | undefined {
  const pkts = pktsOf(body);
  if (!pkts) return undefined;
  const rest = withoutServiceLine(pkts);
  const first = rest[0];
  if (first?.type !== "data") return undefined;
  const line = lineOf(first.payload);
  if (line === "version 2") return { type: "ask-ls-refs", format: v2FormatOf(rest) };
  const refs = line === "version 1" ? rest.slice(1) : rest;
  const found = { ids: new Set<Oid>(), refs: new Map<string, Oid>() };
  for (const pkt of refs) {
    if (pkt.type !== "data") continue;
    const text = lineOf(pkt.payload);
    const id = idOfLine(text);
    if (id === undefined) return undefined;
    // An empty repository sends one line with no ref behind it.
    if (/^0+$/.test(id)) continue;
    found.ids.add(id);
    const name = nameOfLine(text);
    if (!name.endsWith("^{}")) found.refs.set(name, id);
  }
  return { type: "refs", ...found };
}

/** A server that says nothing of it knows SHA-1 only. */
const v2FormatOf = (pkts: readonly Pkt[]): ObjectFormat =>
  pkts.some((pkt) => pkt.type === "data" && lineOf(pkt.payload) === "object-format=sha256") ? "sha256" : "sha1";

export function readLsRefs(body: Buffer): RemoteRefs | undefined {
  const pkts = pktsOf(body);
  if (pkts?.at(-1)?.type !== "flush") return undefined;
  const ids = new Set<Oid>();
  const refs = new Map<string, Oid>();
  for (const pkt of pkts) {
    if (pkt.type !== "data") continue;
    const line = lineOf(pkt.payload);
    if (line.startsWith("unborn ")) continue;
    const id = idOfLine(line);
    if (id === undefined) return undefined;
    ids.add(id);
    refs.set(nameOfLine(line), id);
    const peeled = / peeled:(\S+)/.exec(line)?.[1];
    if (isOid(peeled)) ids.add(peeled);
  }
  return { ids, refs };
}

/** Behind the id, up to the capabilities of version 0 or the attributes of version 2. */
const nameOfLine = (line: string): string => line.slice(line.indexOf(" ") + 1).split(/[\0 ]/, 1)[0] ?? "";

function idOfLine(line: string): Oid | undefined {
  const id = line.slice(0, line.indexOf(" "));
  // "shallow <id>" lines of version 0 name no ref.
  if (id === "shallow") return "0".repeat(40) as Oid;
  return isOid(id) ? id : undefined;
}

/** `# service=git-upload-pack` and its flush; some servers leave it out in protocol 2. */
function withoutServiceLine(pkts: readonly Pkt[]): readonly Pkt[] {
  const first = pkts[0];
  if (first?.type !== "data" || lineOf(first.payload) !== "# service=git-upload-pack") return pkts;
  return pkts[1]?.type === "flush" ? pkts.slice(2) : pkts.slice(1);
}

function pktsOf(body: Buffer): Pkt[] | undefined {
  try {
    const pkts = listPkts(body, maxLines);
    return pkts.length > maxLines ? undefined : pkts;
  } catch (error) {
    if (error instanceof PktError) return undefined;
    throw error;
  }
}
