// What our own server reports: the feed, purgatory, lists, and who needs an event (spec "Following our own relay").

import { addressText, parseAddress } from "../../nostr/address.js";
import { type NostrEvent, tagValue } from "../../nostr/event.js";
import type { EventId } from "../../nostr/ids.js";
import { kinds } from "../../nostr/kinds.js";
import { judgeAgain } from "./arrivals.js";
import { announcementsItem } from "./items.js";
import type { Input } from "./messages.js";
import type { Step, SyncState } from "./state.js";
import { followBootstrap } from "./targets.js";
import type { Level } from "./wanted.js";
import { makeFresh } from "./words.js";

export type OwnInput = Extract<
  Input,
  { type: "accepted" | "waiting" | "unwaiting" | "removed" | "replayEnded" | "listsChanged" | "wantIds" }
>;

const coordinateOf = (event: NostrEvent): string =>
  addressText({ kind: kinds.announcement, pubkey: event.pubkey, identifier: tagValue(event, "d") ?? "" });

export function onOwnServer(state: SyncState, input: OwnInput, step: Step): void {
  const { wanted, remembered } = state;
  switch (input.type) {
    case "accepted":
      if (input.event.kind !== kinds.announcement) {
        wanted.addRoot(input.event);
        judgeAgain(state, input.event, undefined, step);
      } else if (input.hosted === false) wanted.removeRepo(coordinateOf(input.event));
      else announce(state, input.event, "full", step);
      break;
    case "waiting":
      announce(state, input.event, "state-only", step);
      break;
    case "unwaiting":
      if (wanted.repos.get(input.coordinate)?.level === "state-only") wanted.removeRepo(input.coordinate);
      remembered.forgetIdentifier(parseAddress(input.coordinate)?.identifier ?? "", step.out);
      break;
    case "removed":
      removed(state, input, step);
      break;
    case "replayEnded":
      wanted.endReplay();
      break;
    case "listsChanged":
      remembered.listsChanged(step.out, input.archive ?? false);
      if (input.archive) archiveChanged(state, step);
      break;
    case "wantIds":
      wantIds(state, input.ids, input.coordinate);
      break;
  }
}

/** What is mirrored has changed: announcements are asked for again, and new services followed from now on. */
function archiveChanged(state: SyncState, step: Step): void {
  followBootstrap(state, step);
  for (const relay of state.relays.values()) {
    makeFresh(state, relay, announcementsItem);
    state.touched.add(relay);
  }
}

function announce(state: SyncState, event: NostrEvent, level: Level, step: Step): void {
  const { wanted } = state;
  const isNew = wanted.announce(event, level) !== undefined;
  const coordinate = coordinateOf(event);
  // Its roots may have been stored before anybody wanted it.
  if (isNew && wanted.replayEnded) step.out.push({ type: "lookUpRoots", coordinate });
  judgeAgain(state, event, coordinate, step);
}

function removed(state: SyncState, input: Extract<OwnInput, { type: "removed" }>, step: Step): void {
  const { wanted, remembered } = state;
  if (input.address === undefined) {
    wanted.removeRoot(input.id);
    return;
  }
  // A newer version takes its place and says itself what is wanted.
  if (input.cause === "replaced" || wanted.repos.get(input.address)?.announcementId !== input.id) return;
  wanted.removeRepo(input.address);
  remembered.forgetIdentifier(parseAddress(input.address)?.identifier ?? "", step.out);
}

function wantIds(state: SyncState, ids: readonly EventId[], coordinate: string): void {
  const repo = state.wanted.repos.get(coordinate);
  for (const relay of state.relays.values()) {
    if (!relay.bootstrap && !repo?.placed.has(relay.ix)) continue;
    const room = Math.max(0, state.config.maxDirectIds - relay.direct.length);
    relay.direct.push(...ids.slice(0, room));
    state.touched.add(relay);
  }
}
