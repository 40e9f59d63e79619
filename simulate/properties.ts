// Properties 1, 2, 5 and 6, checked after the world has been calm for two simulated days, and what is missing at a relay.

import type { EventId, NostrEvent } from "../src/nostr/event.js";
import { goodSignature, lists } from "./events.js";
import type { ModelRelay } from "./model-relay.js";
import type { ModelServer } from "./model-server.js";
import type { World } from "./world.js";

const value = (event: NostrEvent, name: string): string => event.tags.find((tag) => tag[0] === name)?.[1] ?? "";

interface Wants {
  readonly any: boolean;
  readonly identifiers: Set<string>;
  readonly coordinates: Set<string>;
  readonly roots: Set<string>;
  readonly related: Set<string>;
  readonly authors: Set<string>;
}

/** What the layers ask of a relay, worked out from the server's state alone. */
function wantsOf(server: ModelServer, relay: ModelRelay, bootstrap: boolean, withLayerFour: boolean): Wants {
  const wants: Wants = {
    any: bootstrap,
    identifiers: new Set(),
    coordinates: new Set(),
    roots: new Set(),
    related: new Set(),
    authors: new Set(),
  };
  let any = bootstrap;
  const tooLong = (text: string): boolean => relay.manners.refusesLongValues && text.length > 255;
  const full: string[] = [];
  for (const coordinate of server.hosted) {
    const event = server.latest.get(coordinate)!;
    const listed = lists(event, relay.key);
    any ||= listed;
    if ((listed || bootstrap) && !tooLong(value(event, "d"))) wants.identifiers.add(value(event, "d"));
    if (!listed) continue;
    full.push(coordinate);
    if (!tooLong(coordinate)) wants.coordinates.add(coordinate);
    for (const root of server.rootsOf(coordinate)) wants.roots.add(root.id);
  }
  for (const { event } of server.waiting.values()) {
    const listed = lists(event, relay.key);
    any ||= listed;
    if ((listed || bootstrap) && !tooLong(value(event, "d"))) wants.identifiers.add(value(event, "d"));
  }
  if (!withLayerFour) return { ...wants, any };
  const related = server.relatedTo(full);
  for (const id of related.ids) wants.related.add(id);
  for (const author of related.authors) wants.authors.add(author);
  return { ...wants, any };
}

/** Layer 4 only: asked for once a day, by events that may themselves have come with another relay's daily sync. */
function isRelated(wants: Wants, event: NostrEvent): boolean {
  if ([5, 62, 10317].includes(event.kind) && wants.authors.has(event.pubkey)) return true;
  return event.tags.some(([name = "", text = ""]) => /^[eE]$/.test(name) && wants.related.has(text));
}

function isWanted(wants: Wants, event: NostrEvent): boolean {
  if (event.kind === 30617) return true;
  if (event.kind === 30618 && wants.identifiers.has(value(event, "d"))) return true;
  return event.tags.some(([name = "", text = ""]) => {
    if (/^[aAq]$/.test(name) && wants.coordinates.has(text)) return true;
    return /^[eEq]$/.test(name) && wants.roots.has(text);
  });
}

/** Events of the live layers that the relay holds and we would take, and do not have. */
export function missingAt(server: ModelServer, relay: ModelRelay, bootstrap: boolean): Set<EventId> {
  const missing = new Set<EventId>();
  const wants = wantsOf(server, relay, bootstrap, false);
  if (!wants.any) return missing;
  for (const event of relay.events.values()) {
    if (server.stored.has(event.id) || server.isTurnedAway(event.id) || !isWanted(wants, event)) continue;
    const outcome = server.judge(event);
    if (outcome.type !== "stored" && outcome.type !== "held") continue;
    missing.add(event.id);
  }
  return missing;
}

/** Events of layer 4 that are still missing. */
export function missingRelated(world: World, bootstrap: readonly string[]): string[] {
  const missing: string[] = [];
  for (const relay of world.relays.values()) {
    if (!relay.honest) continue;
    const wants = wantsOf(world.server, relay, bootstrap.includes(relay.key), true);
    for (const event of relay.events.values()) {
      if (!wants.any || !isRelated(wants, event) || world.server.judge(event).type !== "stored") continue;
      missing.push(`property 1: kind ${event.kind} ${event.id.slice(0, 8)} of ${relay.key} is not here (layer 4)`);
    }
  }
  return missing;
}

export function checkEnd(world: World, bootstrap: readonly string[]): string[] {
  const problems: string[] = [];
  const { server } = world;
  const snapshot = world.snapshot();
  const nowMs = world.now().monotonicMs;
  for (const relay of world.relays.values()) {
    if (!relay.honest) continue;
    const wants = wantsOf(server, relay, bootstrap.includes(relay.key), false);
    if (!wants.any) continue;
    for (const event of relay.events.values()) {
      if (!isWanted(wants, event) || server.isTurnedAway(event.id)) continue;
      const outcome = server.judge(event);
      if (outcome.type !== "stored" && outcome.type !== "held") continue;
      problems.push(`property 1: kind ${event.kind} ${event.id.slice(0, 8)} of ${relay.key} is not here`);
    }
    const seen = snapshot.relays.find((other) => other.relay === relay.key);
    if (!seen?.connected)
      problems.push(`property 5: ${relay.key} is reachable and wanted but not connected (${seen?.state})`);
    else if (seen.oldestBatchMs !== undefined && nowMs - seen.oldestBatchMs > 30 * 60 * 1000) {
      problems.push(`property 5: ${relay.key} has a batch of ${Math.round((nowMs - seen.oldestBatchMs) / 60_000)} min`);
    } else if (seen.state !== "syncing" && seen.confirmedItems + seen.retryingItems + seen.barredItems < seen.items) {
      problems.push(
        `property 5: ${relay.key} has ${seen.items - seen.confirmedItems} of ${seen.items} items in no state`,
      );
    } else if (seen.retryingItems > 0) {
      problems.push(`property 5: ${relay.key} still retries ${seen.retryingItems} items`);
    }
  }
  for (const event of server.stored.values()) {
    if (event.sig !== goodSignature)
      problems.push(`property 2: ${event.id.slice(0, 8)} with a bad signature is stored`);
  }
  for (const [id, times] of server.timesStored) {
    if (times > 1) problems.push(`property 1: ${id.slice(0, 8)} was stored ${times} times`);
  }
  const { tables } = snapshot;
  const known = server.hosted.size + server.waiting.size;
  if (snapshot.repos > known) problems.push(`property 6: ${snapshot.repos} repos wanted, ${known} known`);
  if (tables.early > 0) problems.push("property 6: early roots are kept after the replay");
  for (const relay of snapshot.relays) {
    if (relay.offersInFlight > 0) problems.push(`property 6: ${relay.relay} has offers without a verdict`);
    const wanted = [...server.hosted].some((coordinate) => lists(server.latest.get(coordinate)!, relay.relay));
    const waits = [...server.waiting.values()].some((entry) => lists(entry.event, relay.relay));
    // The index relay and the fallback are asked for lists now and then.
    const isAsked = relay.outboxRepositories > 0 || /^[if]0\./.test(relay.relay);
    if (!wanted && !waits && !relay.bootstrap && !isAsked)
      problems.push(`property 6: ${relay.relay} is tracked and nobody lists it`);
  }
  return problems;
}
