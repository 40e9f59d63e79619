// What our own server reports: the feed, purgatory, lists, and who needs an event (spec "Following our own relay").

import { addressText, type NostrEvent, parseAddress, tagValue } from "../../nostr/event.js";
import { kinds } from "../../nostr/kinds.js";
import type { Input } from "./messages.js";
import { judgeAgain, listsChanged, newestGone, wantIds } from "./rejudging.js";
import type { Step, SyncState } from "./state.js";
import type { Level } from "./wanted.js";

type OwnInput = Extract<
  Input,
  { type: "accepted" | "waiting" | "unwaiting" | "removed" | "replayEnded" | "listsChanged" | "wantIds" }
>;

const coordinateOf = (event: NostrEvent): string =>
  addressText({ kind: kinds.announcement, pubkey: event.pubkey, identifier: tagValue(event, "d") ?? "" });

export function onOwnServer(state: SyncState, input: OwnInput, step: Step): void {
  const { wanted } = state;
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
      noteGone(state, input.coordinate, step);
      break;
    case "removed":
      removed(state, input, step);
      break;
    case "replayEnded":
      wanted.endReplay();
      break;
    case "listsChanged":
      listsChanged(state, input.archive ?? false, step);
      break;
    case "wantIds":
      wantIds(state, input.ids, input.coordinate);
      break;
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
  const { wanted } = state;
  if (input.address === undefined) {
    wanted.removeRoot(input.id);
    return;
  }
  // A newer version takes its place and says itself what is wanted.
  if (input.cause === "replaced") return;
  const isAnnouncement = parseAddress(input.address)?.kind === kinds.announcement;
  if (isAnnouncement && wanted.repos.get(input.address)?.announcementId !== input.id) return;
  if (isAnnouncement) wanted.removeRepo(input.address);
  noteGone(state, input.address, step);
}

function noteGone(state: SyncState, text: string, step: Step): void {
  const address = parseAddress(text);
  if (address) newestGone(state, address, step);
}
