// What is known of one repository whose data is hunted, in the operator's words.

import { type Clock, unixSeconds } from "../base/clock.js";
import type { Oid } from "../nostr/ids.js";
import type { AskedServer } from "./asked-servers.js";
import type { FollowedRepository } from "./followed.js";

/** What is known of one repository that lacks objects; for the operator only. */
export interface HuntedRepository {
  readonly address: string;
  readonly missing: readonly { readonly event: string; readonly soft: boolean; readonly ids: readonly Oid[] }[];
  readonly servers: readonly AskedServer[];
  /** Unix seconds; undefined while an attempt goes on. */
  readonly nextAttempt: number | undefined;
}

/** `dueMs`: of the next attempt, by the monotonic clock. */
export function huntedRepository(
  address: string,
  { items, servers }: FollowedRepository,
  dueMs: number | undefined,
  clock: Clock,
): HuntedRepository {
  const inSeconds = dueMs === undefined ? undefined : (dueMs - clock.monotonicMs()) / 1_000;
  return {
    address,
    missing: [...items.values()].map(({ id, soft, ids }) => ({ event: id, soft, ids })),
    servers: servers.list(),
    nextAttempt: inSeconds === undefined ? undefined : Math.ceil(unixSeconds(clock) + inSeconds),
  };
}
