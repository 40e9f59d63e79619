// Continuous integration as the newest clients write it (draft kinds 9840–9844, 19843, 19844, 29846, 39842, 39844): what
// a run says about a commit. Views read tags; they judge nothing, and an event that is not what its kind asks for is no
// run. A signature says who reported a result, never that a maintainer stands behind it.

import { type EventId, isEventId, kinds, type NostrEvent, type Pubkey, tagValue, tagValues } from "./event.js";
import { isOid, type Oid } from "./nip34.js";

const conclusions = ["success", "failure", "neutral", "cancelled", "skipped", "timed_out", "startup_failure"] as const;
export type CiConclusion = (typeof conclusions)[number];

export interface CiRun {
  /** The event that says so. */
  readonly id: EventId;
  /** Who accepted the run and reports it. */
  readonly coordinator: Pubkey;
  /** Unique for its coordinator. */
  readonly run: string;
  /** Path of the workflow file. */
  readonly workflow: string;
  readonly commits: readonly Oid[];
  /** The pull request it was run for. */
  readonly pullRequest: EventId | undefined;
  readonly status: "queued" | "in progress" | CiConclusion;
  readonly created_at: number;
}

const isConclusion = (text: string | undefined): text is CiConclusion => conclusions.some((one) => one === text);

/** A result (9842) ends a run; a marker of its progress (39842) lives at most half an hour. */
export function ciRunOf(event: NostrEvent): CiRun | undefined {
  if (event.kind !== kinds.ciResult && event.kind !== kinds.ciProgress) return undefined;
  const commits = [...new Set(tagValues(event, "c").filter(isOid))];
  const workflow = tagValue(event, "w");
  const run =
    event.kind === kinds.ciProgress ? tagValue(event, "d") : tagValues(event, "r").find((r) => !r.startsWith("refs/"));
  const status = statusOf(event);
  if (commits.length === 0 || !workflow || !run || !status) return undefined;
  const root = tagValue(event, "E");
  return {
    id: event.id,
    coordinator: event.pubkey,
    run,
    workflow,
    commits,
    pullRequest: isEventId(root) ? root : undefined,
    status,
    created_at: event.created_at,
  };
}

function statusOf(event: NostrEvent): CiRun["status"] | undefined {
  const conclusion = tagValue(event, "conclusion");
  const status = event.kind === kinds.ciResult ? "concluded" : tagValue(event, "status");
  if (status === "queued") return "queued";
  if (status === "in_progress") return "in progress";
  return status === "concluded" && isConclusion(conclusion) ? conclusion : undefined;
}
