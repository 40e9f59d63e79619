// One exchange with one relay, asked for by the operator: bring both sides in step (`holdfast sync`, `holdfast
// mirror`), or only look what each lacks (`sync verify`). Uses negentropy; a relay that says a range is too large is
// asked by halves of time; where `orRead` allows it, and for a mere look, a relay without negentropy is read page by
// page.

import { groupsOf } from "../base/collections.js";
import type { RelayDialer } from "../net/relay-dialer.js";
import type { RelayUrl } from "../net/url.js";
import type { EventId, NostrEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { type Conversation, converse, OneOffFailure, pages, request } from "./conversation.js";
import { syncConstants } from "./core/config.js";
import { splitTime } from "./core/paging.js";
import { type OwnSide, type ReconcileResult, Reconciliation } from "./reconciliation.js";

export interface OneOffSide extends OwnSide {
  /** Those of these events that we hold, as text. */
  events(ids: readonly EventId[]): Promise<readonly { readonly id: EventId; readonly text: string }[]>;
  /** Takes an event in; the refusal's code when it is not wanted, `known` when it was here already. */
  take(event: NostrEvent): Promise<"stored" | "known" | string>;
}

interface OneOffOptions {
  readonly url: RelayUrl;
  readonly filters: readonly Filter[];
  readonly direction: "up" | "down" | "both";
  /** A relay that does not reconcile is read page by page. Only for `down`. */
  readonly orRead?: boolean;
  readonly dialer: RelayDialer;
  readonly own: OneOffSide;
  /** `total` undefined: the relay is read page by page, and nobody knows how much it has. */
  readonly progress: (phase: "down" | "up", done: number, total: number | undefined) => void;
  readonly signal: AbortSignal;
}

export interface OneOffTally {
  missingHere: number;
  missingThere: number;
  stored: number;
  known: number;
  sent: number;
  refusedHere: Record<string, number>;
  refusedThere: number;
}

const idsAtOnce = 100;
const reconcileSilenceMs = 10_000;
const maxMissing = 1_000_000;

export async function syncOnce(options: OneOffOptions): Promise<OneOffTally> {
  const { direction, own } = options;
  const conversation = await converse(options.url, options.dialer, options.signal);
  const tally: OneOffTally = {
    missingHere: 0,
    missingThere: 0,
    stored: 0,
    known: 0,
    sent: 0,
    refusedHere: {},
    refusedThere: 0,
  };
  try {
    const found: Found = { missing: new Set(), waiting: new Set(), peerMissing: new Set() };
    for (const { limit: _limit, ...filter } of options.filters) {
      const refusal = await new Comparison(conversation, own, found).of(filter);
      if (refusal === undefined) continue;
      if (!options.orRead) throw new OneOffFailure(refusal);
      await readAll(conversation, options, filter, tally);
    }
    tally.missingHere += found.missing.size;
    tally.missingThere = found.peerMissing.size;
    if (direction !== "up") {
      await inParts([...found.missing], "down", options, async (ids) =>
        takeAll(own, await request(conversation, { ids }), tally),
      );
    }
    if (direction !== "down") {
      await inParts([...found.peerMissing], "up", options, (ids) => send(conversation, own, ids, tally));
    }
    return tally;
  } finally {
    conversation.close();
  }
}

interface Found {
  readonly missing: Set<EventId>;
  /** Served there, held here until git data comes. */
  readonly waiting: Set<EventId>;
  readonly peerMissing: Set<EventId>;
}

/** One filter, by halves of time where the relay says that it is too much. */
class Comparison {
  #splitsInVain = 0;

  constructor(
    private readonly conversation: Conversation,
    private readonly own: OwnSide,
    private readonly found: Found,
  ) {}

  /** Why the relay does not reconcile; undefined when it did. */
  async of(filter: Filter): Promise<string | undefined> {
    const first = await reconcileOnce(this.conversation, this.own, filter);
    const isAsked = !first.ok && (await this.conversation.enterIfAsked(first.text));
    const result = isAsked ? await reconcileOnce(this.conversation, this.own, filter) : first;
    if (result.ok) {
      this.#splitsInVain = 0;
      for (const name of ["missing", "waiting", "peerMissing"] as const) {
        for (const id of result[name]) this.found[name].add(id);
      }
      return undefined;
    }
    const isTooMany = result.kind === "too-many" && this.#splitsInVain < syncConstants.maxSplitsInVain;
    const nowSeconds = Math.floor(this.conversation.clock.nowMs() / 1_000);
    const halves = isTooMany ? splitTime(filter, nowSeconds) : undefined;
    if (!halves) return `the relay does not reconcile: ${result.text}`;
    this.#splitsInVain += 1;
    for (const half of halves) {
      const refusal = await this.of(half);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }
}

function reconcileOnce(conversation: Conversation, own: OwnSide, filter: Filter): Promise<ReconcileResult> {
  const session = conversation.name();
  let reconciliation: Reconciliation | undefined;
  let cancel = (): void => undefined;
  return conversation.exchange<ReconcileResult>(
    (done) => {
      reconciliation = new Reconciliation(session, maxMissing, own, {
        send: (message) => conversation.say((client) => client.reconcile(message)),
        progress: (ours) => {
          cancel();
          if (ours) return conversation.rest();
          // Some relays answer nothing at all to what they do not know.
          cancel = conversation.clock.after(reconcileSilenceMs, () => reconciliation?.onRefused("it does not answer"));
        },
        ended: done,
        fault: (error) => conversation.fail(String(error)),
      });
      void reconciliation.open(filter);
    },
    (message) => {
      cancel();
      if (message.type === "NOTICE") reconciliation?.onRefused(message.text);
      else reconciliation?.heard(message);
    },
  );
}

async function readAll(
  conversation: Conversation,
  { own, progress }: OneOffOptions,
  filter: Filter,
  tally: OneOffTally,
): Promise<void> {
  let seen = 0;
  for await (const events of pages(conversation, filter)) {
    seen += events.length;
    const unheld = new Set((await own.sort(events.map(({ id }) => id))).missing);
    tally.missingHere += unheld.size;
    const wanted = events.filter(({ id }) => unheld.has(id));
    await takeAll(own, wanted, tally);
    progress("down", seen, undefined);
    if (seen > maxMissing) return;
  }
}

async function takeAll(own: OneOffSide, events: readonly NostrEvent[], tally: OneOffTally): Promise<void> {
  for (const outcome of await Promise.all(events.map((event) => own.take(event)))) {
    if (outcome === "stored") tally.stored += 1;
    else if (outcome === "known") tally.known += 1;
    else tally.refusedHere[outcome] = (tally.refusedHere[outcome] ?? 0) + 1;
  }
}

/** The ids in parts, with the progress of each. */
async function inParts(
  ids: readonly EventId[],
  phase: "down" | "up",
  { progress }: OneOffOptions,
  work: (some: readonly EventId[]) => Promise<void>,
): Promise<void> {
  let done = 0;
  for (const some of groupsOf(ids, idsAtOnce)) {
    await work(some);
    done += some.length;
    progress(phase, done, ids.length);
  }
}

async function send(conversation: Conversation, own: OneOffSide, ids: readonly EventId[], tally: OneOffTally) {
  const events = await own.events(ids);
  const open = new Set<string>(events.map(({ id }) => id));
  if (open.size === 0) return;
  await conversation.exchange<void>(
    () => {
      for (const { text } of events) conversation.say((client) => client.publish(text));
    },
    (message, done) => {
      if (message.type !== "OK" || !open.delete(message.id)) return;
      if (message.ok) tally.sent += 1;
      else tally.refusedThere += 1;
      if (open.size === 0) done();
    },
  );
}

interface CompareOnce {
  readonly url: RelayUrl;
  readonly filters: readonly Filter[];
  readonly dialer: RelayDialer;
  readonly own: OwnSide;
  readonly maxMs: number;
  readonly signal: AbortSignal;
}

/** `read`: page by page, because the relay does not reconcile. */
type Compared = Found & { readonly method: "negentropy" | "read" };

const maxRead = 100_000;

/**
 * What a relay and our store have of the same thing; changes nothing on either side. Bounded in time and in what is
 * read.
 */
export async function compareOnce(options: CompareOnce): Promise<Compared> {
  const { url, filters, dialer, own, maxMs, signal } = options;
  const conversation = await converse(url, dialer, signal);
  const stop = (): void => conversation.fail("the comparison was ended");
  signal.addEventListener("abort", stop);
  const cancel = dialer.clock.after(maxMs, () => conversation.fail(`it took longer than ${maxMs / 1_000} s`));
  const found: Found = { missing: new Set(), waiting: new Set(), peerMissing: new Set() };
  let method: Compared["method"] = "negentropy";
  try {
    for (const filter of filters) {
      const refusal = method === "read" ? undefined : await new Comparison(conversation, own, found).of(filter);
      if (refusal !== undefined) method = "read";
      if (method === "read") await read(conversation, own, filter, signal, found);
    }
    return { ...found, method };
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
    conversation.close();
  }
}

async function read(
  conversation: Conversation,
  own: OwnSide,
  filter: Filter,
  signal: AbortSignal,
  found: Found,
): Promise<void> {
  const records = await own.records(filter, signal);
  if (!records) throw new OneOffFailure("there is too much here to compare it page by page");
  const here = new Set<EventId>();
  for (let at = 0; at < records.length; at++) here.add(records.id(at));
  let seen = 0;
  for await (const events of pages(conversation, filter)) {
    seen += events.length;
    if (seen > maxRead) throw new OneOffFailure(`the relay has more than ${maxRead} events of it`);
    const others = events.flatMap(({ id }) => (here.delete(id) ? [] : [id]));
    const { missing, waiting } = await own.sort(others);
    for (const id of missing) found.missing.add(id);
    for (const id of waiting) found.waiting.add(id);
  }
  for (const id of here) found.peerMissing.add(id);
}
