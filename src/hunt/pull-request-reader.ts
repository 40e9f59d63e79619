// Waiting pull requests as the hunt needs them. A repository is looked at again with each that comes, and thousands may
// wait there: an entry is read and parsed once, not at every look. Keeps what it read within a bound, the newest longest.

import { type WaitingPhase, waitingEntry, waitingEvent, waitingHints } from "../catalogue/waiting.js";
import { type EventId, isOid, type Oid } from "../nostr/ids.js";
import { pullRequestOf } from "../nostr/nip34.js";
import type { TableReader } from "../store/port.js";

export interface WaitingPullRequest {
  readonly id: EventId;
  readonly phase: WaitingPhase;
  readonly isClients: boolean;
  /** None: it can only expire. */
  readonly tip: Oid | undefined;
  readonly clone: readonly string[];
  /** `30617:<owner>:<identifier>` of each repository it concerns. */
  readonly repositories: readonly string[];
  readonly bytes: number;
}

const maxBytes = 16 * 2 ** 20;

export class PullRequestReader {
  readonly #read = new Map<EventId, WaitingPullRequest>();
  #bytes = 0;

  /** Those under an index prefix whose tip could be an object, at most `limit`. */
  async under(reader: TableReader, prefix: string, limit: number): Promise<WaitingPullRequest[]> {
    const found: WaitingPullRequest[] = [];
    for (const { id, phase } of await waitingHints(reader, prefix, limit)) {
      const known = this.#read.get(id);
      // Sent again by a client it waits in another phase: nothing else of an entry changes.
      const one = known?.phase === phase ? known : await this.#readAgain(reader, id);
      if (one?.tip) found.push(one);
    }
    return found;
  }

  async #readAgain(reader: TableReader, id: EventId): Promise<WaitingPullRequest | undefined> {
    this.#forget(id);
    const entry = await waitingEntry(reader, id);
    if (!entry) return undefined;
    const pullRequest = entry.releasable ? pullRequestOf(waitingEvent(entry)) : undefined;
    const { phase, repositories, bytes, source } = entry;
    const tip = isOid(pullRequest?.tip) ? pullRequest.tip : undefined;
    const one = {
      id,
      phase,
      isClients: source.type === "client",
      tip,
      clone: pullRequest?.clone ?? [],
      repositories,
      bytes,
    };
    this.#read.set(id, one);
    this.#bytes += bytes;
    for (const oldest of this.#read.keys()) {
      if (this.#bytes <= maxBytes) break;
      this.#forget(oldest);
    }
    return one;
  }

  #forget(id: EventId): void {
    this.#bytes -= this.#read.get(id)?.bytes ?? 0;
    this.#read.delete(id);
  }
}
