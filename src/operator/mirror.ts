// `holdfast mirror`: puts a key, a repository or a GRASP service on the archive lists (GRASP-05), asks relays for what
// it announced, and tells how far each repository is. Fetching git data is the hunt's; following is sync's.

import { cloneUrlsOnHosts } from "../admission/service.js";
import { groupsOf } from "../base/collections.js";
import { type CatalogueRow, catalogueRow, catalogueRows, type RepositoryName } from "../catalogue/repositories.js";
import { waitingHints, waitingKeys } from "../catalogue/waiting.js";
import type { Reach } from "../net/address.js";
import { type RelayUrl, servicePart } from "../net/url.js";
import { kinds, type Pubkey } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { npubOf, parseNaddr } from "../nostr/nip19.js";
import { type Refusal, type RefusalCode, refusalText } from "../nostr/refusals.js";
import { type AdminParts, done, type OperationContext, type Outcome, refusal } from "./context.js";
import { addToList } from "./lists.js";
import { keyNamed, relayNamed, repositoryNamedBy, repositoryText, serviceNamed } from "./naming.js";
import { dialerOf, syncWithRelay } from "./relays.js";
import type { ListName } from "./rules.js";

export type MirrorTarget =
  | { readonly type: "key"; readonly pubkey: Pubkey }
  | { readonly type: "repository"; readonly name: RepositoryName; readonly hints: readonly string[] }
  | { readonly type: "service"; readonly host: string; readonly relay: string };

/** npub or hex key; naddr or npub/identifier; the URL of a service's relay. */
export function mirrorTargetNamed(text: string): MirrorTarget | undefined {
  const name = text.trim();
  if (/^wss?:\/\//i.test(name)) {
    const service = relayNamed(name) && serviceNamed(name);
    return service && { type: "service", host: service.host, relay: name };
  }
  const pubkey = keyNamed(name);
  if (pubkey) return { type: "key", pubkey };
  const repository = repositoryNamedBy(name);
  const hints = parseNaddr(name.replace(/^nostr:/, ""))?.relays ?? [];
  return repository && { type: "repository", name: repository, hints };
}

export interface AskedRelay {
  readonly relay: string;
  /** Events that came from it; null when it could not be asked. */
  readonly taken: number | null;
  /** Announcements it has that are not to be mirrored. */
  readonly elsewhere: number;
  readonly problem: string;
}

/** there: served with all its data. waiting: its data is being looked for. no-state: nothing says what to look for. */
export type MirrorStanding = "there" | "partial" | "waiting" | "no-state" | "failed";

export interface MirrorLine {
  readonly repository: string;
  readonly standing: MirrorStanding;
  /** Its announcement was refused. */
  readonly code?: RefusalCode;
  readonly reason: string;
}

export interface MirrorStarted {
  readonly list: ListName;
  readonly entry: string;
  readonly added: boolean;
  /** Without a running server nothing is fetched yet. */
  readonly running: boolean;
  readonly relays: readonly AskedRelay[];
  readonly repositories: readonly MirrorLine[];
}

const unreadable = (text: string) =>
  refusal("bad-request", `${JSON.stringify(text)} is not an npub, an naddr, npub/identifier or wss://relay`);

export async function startMirror(
  parts: AdminParts,
  asked: { readonly target: string; readonly relays: readonly string[]; readonly reason: string },
  context: OperationContext,
): Promise<Outcome<MirrorStarted>> {
  const target = mirrorTargetNamed(asked.target);
  if (!target) return unreadable(asked.target);
  const relays = relaysToAsk(parts, target, asked.relays);
  if (!relays.ok) return relays;
  // Nothing is put on a list that nobody may then be asked for.
  const dialer = await dialerOf(parts, parts.reach());
  if (!dialer.ok) return dialer;
  const { list, entry } = entryOf(target);
  const added = await addToList(parts, context.caller, { list, entry, reason: asked.reason });
  if (!added.ok) return added;
  const refusals = new Map<string, Refusal>();
  const answers: AskedRelay[] = [];
  for (const { url, reach } of relays.result) {
    answers.push(await pull(parts, target, url, reach, refusals, context));
  }
  const lines = await linesOf(parts, target);
  const known = new Set(lines.map(({ repository }) => repository));
  const unknown = [...refusals].filter(([repository]) => !known.has(repository));
  return done({
    list,
    entry,
    added: added.result.added,
    running: parts.running !== undefined,
    relays: answers,
    repositories: [
      ...lines,
      ...unknown.map(
        ([repository, refused]): MirrorLine => ({
          repository,
          standing: "failed",
          code: refused.code,
          reason: refusalText(refused),
        }),
      ),
    ],
  });
}

export async function showMirror(
  parts: AdminParts,
  text: string,
): Promise<Outcome<{ readonly repositories: readonly MirrorLine[] }>> {
  const target = mirrorTargetNamed(text);
  return target ? done({ repositories: await linesOf(parts, target) }) : unreadable(text);
}

function entryOf(target: MirrorTarget): { readonly list: ListName; readonly entry: string } {
  switch (target.type) {
    case "key":
      return { list: "archive-whitelist", entry: npubOf(target.pubkey) };
    case "repository":
      return { list: "archive-whitelist", entry: repositoryText(target.name) };
    case "service":
      return { list: "archive-grasp-services", entry: target.host };
  }
}

/** What the operator named may be anywhere; hints and settings are dialled as sync would dial them. */
function relaysToAsk(
  parts: AdminParts,
  target: MirrorTarget,
  named: readonly string[],
): Outcome<readonly { readonly url: RelayUrl; readonly reach: Reach }[]> {
  const config = parts.config();
  const byOperator = [...(target.type === "service" ? [target.relay] : []), ...named];
  const others = [...(target.type === "repository" ? target.hints : []), ...config.syncBootstrapRelayUrl];
  const found = new Map<string, { readonly url: RelayUrl; readonly reach: Reach }>();
  for (const text of [...byOperator, ...others]) {
    const isOperators = byOperator.includes(text);
    const url = relayNamed(text);
    if (!url && isOperators)
      return refusal("bad-request", `${JSON.stringify(text)} is no relay: write wss://host[:port]`);
    const place = url && servicePart(url);
    if (!url || !place || found.has(place)) continue;
    if (place === servicePart(`https://${config.domain}`)) {
      if (isOperators) return refusal("bad-request", `${text} is this server itself`);
      continue;
    }
    found.set(place, { url, reach: isOperators ? "private" : parts.reach() });
  }
  return found.size > 0
    ? done([...found.values()])
    : refusal("bad-request", "no relay to ask: name one with --relay, or set NGIT_SYNC_BOOTSTRAP_RELAY_URL");
}

function announcementFilter(target: MirrorTarget): Filter {
  const announcements: Filter = { kinds: [kinds.announcement] };
  if (target.type === "service") return announcements;
  if (target.type === "key") return { ...announcements, authors: [target.pubkey] };
  const { owner, identifier } = target.name;
  return { ...announcements, authors: [owner], tags: new Map([["d", [identifier]]]) };
}

const valuesPerFilter = 100;
const maxNamed = 1_000;

/** By identifier, so that states of other maintainers come too. */
function stateFilters(rows: readonly CatalogueRow[]): Filter[] {
  const identifiers = [...new Set(rows.map(({ identifier }) => identifier))];
  if (identifiers.length > maxNamed) return [{ kinds: [kinds.state] }];
  return groupsOf(identifiers, valuesPerFilter).map((some) => ({ kinds: [kinds.state], tags: new Map([["d", some]]) }));
}

async function pull(
  parts: AdminParts,
  target: MirrorTarget,
  relay: RelayUrl,
  reach: Reach,
  refusals: Map<string, Refusal>,
  context: OperationContext,
): Promise<AskedRelay> {
  // A service's relay holds announcements of others too: that those are refused is as it should be.
  const refused = (name: RepositoryName, refusal: Refusal): void => {
    if (target.type !== "service") refusals.set(repositoryText(name), refusal);
  };
  const request = { relay, direction: "down", forMirror: true, reach, refused } as const;
  const announcements = await syncWithRelay(parts, { ...request, filters: [announcementFilter(target)] }, context);
  if (!announcements.ok) return { relay, taken: null, elsewhere: 0, problem: announcements.message };
  const { stored, refusedHere } = announcements.result;
  const elsewhere = refusedHere["service-not-listed"] ?? 0;
  const filters = stateFilters(await rowsOf(parts, target));
  if (filters.length === 0) return { relay, taken: stored, elsewhere, problem: "" };
  const states = await syncWithRelay(parts, { ...request, filters }, context);
  if (!states.ok) return { relay, taken: stored, elsewhere, problem: states.message };
  return { relay, taken: stored + states.result.stored, elsewhere, problem: "" };
}

async function rowsOf({ store }: AdminParts, target: MirrorTarget): Promise<CatalogueRow[]> {
  const rows: CatalogueRow[] = [];
  if (target.type === "repository") {
    const row = await catalogueRow(store, target.name);
    if (row) rows.push(row);
  } else {
    const owner = target.type === "key" ? target.pubkey : undefined;
    for await (const row of catalogueRows(store, owner)) if (owner || isOn(target, row)) rows.push(row);
  }
  return rows.filter(({ status }) => status !== "deleted");
}

const isOn = (target: MirrorTarget, { archive }: CatalogueRow): boolean =>
  target.type === "service" &&
  archive !== null &&
  cloneUrlsOnHosts({ clone: archive.cloneUrls }, new Set([target.host])).length > 0;

async function linesOf(parts: AdminParts, target: MirrorTarget): Promise<MirrorLine[]> {
  const lines: MirrorLine[] = [];
  for (const row of await rowsOf(parts, target)) {
    lines.push({ repository: repositoryText(row), ...(await standingOf(parts, row)) });
  }
  return lines;
}

/** As many servers as the hunt asks of one announcement. */
const serversAsked = 5;

async function standingOf({ store, running }: AdminParts, row: CatalogueRow): Promise<Omit<MirrorLine, "repository">> {
  if (row.status === "leaving") return { standing: "waiting", reason: "it was leaving this server" };
  if (row.status !== "waiting" && row.status !== "soft") {
    if (!row.partial) return { standing: "there", reason: "" };
    return {
      standing: "partial",
      reason: `${row.partial.missingRefs.length} of its refs are on no server asked so far`,
    };
  }
  if ((await waitingHints(store, waitingKeys.repositoryKind(row, "state"), 1)).length === 0) {
    return { standing: "no-state", reason: "no state of it was found so far: nothing says what its branches are" };
  }
  const asked = running?.askedServers(row) ?? [];
  const servers = Math.min(serversAsked, new Set(row.archive?.cloneUrls).size);
  if (asked.length === 0 || asked.length < servers || running?.isFetching(row))
    return { standing: "waiting", reason: "" };
  const answers = asked.map(({ url, answer }) => `${url}: ${answer === "ok" ? "does not have it" : answer}`);
  return { standing: "failed", reason: `${answers.join("; ")} (it is tried again later)` };
}
