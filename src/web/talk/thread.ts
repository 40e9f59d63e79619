// What a list says of an issue, a pull request or a patch, made from its event (NIP-34): pure. A patch that continues another
// one, and an update of a pull request, begin no thread: they belong to their first one.

import { type EventId, isEventId, kinds, type Pubkey, tagValue, tagValues } from "../../nostr/event.js";
import { isOid, type Oid } from "../../nostr/nip34.js";
import { patchTitleOf } from "../../nostr/patch-mail.js";
import type { EventBeginning } from "../../store/event-beginning.js";
import { ownText } from "../read-within.js";

export type ThreadStatus = "open" | "done" | "closed" | "draft";

export const statusKinds: ReadonlyMap<number, ThreadStatus> = new Map([
  [1630, "open"],
  [1631, "done"],
  [1632, "closed"],
  [1633, "draft"],
]);

/** Of an issue or a proposal: what was said last of it by somebody who may. */
export interface StatusWord {
  readonly status: ThreadStatus;
  readonly author: Pubkey;
  readonly created_at: number;
  readonly id: EventId;
}

export interface ThreadRoot {
  readonly id: EventId;
  readonly author: Pubkey;
  readonly created_at: number;
  readonly kind: number;
  readonly title: string;
  readonly labels: readonly string[];
  /** The commit it proposes. */
  readonly tip: Oid | undefined;
}

export interface Thread extends ThreadRoot {
  readonly status: ThreadStatus;
  readonly word: StatusWord | undefined;
}

export const isOpen = ({ status }: Pick<Thread, "status">): boolean => status === "open" || status === "draft";

const maxTitleCharacters = 240;
const maxLabels = 12;
const maxLabelCharacters = 50;

export function titleOf(event: Pick<EventBeginning, "kind" | "tags" | "content">): string {
  return ownText(wholeTitle(event).slice(0, maxTitleCharacters));
}

function wholeTitle(event: Pick<EventBeginning, "kind" | "tags" | "content">): string {
  const text = event.content.slice(0, 16_000);
  const mailed = event.kind === kinds.patch ? patchTitleOf(text) : "";
  if (mailed) return mailed;
  const subject = tagValue(event, "subject")?.slice(0, 4_000).replace(/\s+/g, " ").trim();
  if (subject) return subject;
  return (
    text
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.replace(/^#{1,6} /, "")
      .trim() || "(no title)"
  );
}

/** Tags of patches that say where in a series they stand, not what they are about. */
const isOfSeries = (label: string): boolean =>
  label === "root" || label === "root-revision" || label === "cover-letter";

export function labelsOf(values: readonly string[]): string[] {
  const wanted = values.map((text) => text.trim()).filter((text) => text !== "" && !isOfSeries(text));
  return [...new Set(wanted.map((text) => ownText(text.slice(0, maxLabelCharacters))))].slice(0, maxLabels);
}

/** NIP-32: what somebody else labelled it with; of the namespace of hashtags, or of none. */
export const labelsGiven = (event: Pick<EventBeginning, "tags">): string[] =>
  labelsOf(
    event.tags.flatMap(([name, value, space]) =>
      name === "l" && value !== undefined && (space === undefined || space === "#t" || space === "ugc") ? [value] : [],
    ),
  );

export function threadRootOf(event: EventBeginning): ThreadRoot {
  const tip = tagValue(event, event.kind === kinds.patch ? "commit" : "c");
  return {
    id: event.id,
    author: event.pubkey,
    created_at: event.created_at,
    kind: event.kind,
    title: titleOf(event),
    labels: labelsOf(tagValues(event, "t")),
    tip: isOid(tip) ? (ownText(tip) as Oid) : undefined,
  };
}

/** The event it continues; undefined: it begins a thread. */
export function continuedBy({ kind, tags }: Pick<EventBeginning, "kind" | "tags">): EventId | undefined {
  if (kind === kinds.pullRequestUpdate) {
    const updated = tagValue({ tags }, "E") ?? tagValue({ tags }, "e");
    return isEventId(updated) ? updated : undefined;
  }
  if (kind !== kinds.patch) return undefined;
  const series = tagValues({ tags }, "t");
  if (series.includes("root") && !series.includes("root-revision")) return undefined;
  const replies = tags.filter(([name, id]) => name === "e" && isEventId(id));
  const marked = (word: string) => replies.find((tag) => tag[3] === word);
  const chosen = marked("reply") ?? marked("root") ?? replies.find((tag) => tag[3] !== "mention");
  return chosen?.[1] as EventId | undefined;
}

/** As a reader knows it. */
export function statusWord({ kind, status }: Pick<Thread, "kind" | "status">): string {
  if (status !== "done") return status;
  return kind === kinds.issue ? "resolved" : "merged";
}
