// How each followed relay was, looked at now and then, kept in memory for a day: what the status page's sparklines are made
// of. Begins with the server, before anybody asks for a page.

export type Sample = "up" | "part" | "down";

/** What it looks at. */
export interface FollowedRelay {
  readonly url: string;
  readonly isConnected: boolean;
  readonly health: "healthy" | "degraded" | "dead" | "rate-limited";
}

export const samplesKept = 48;
/** A day in all. */
export const sampleEveryMs = 30 * 60_000;
const maxRelays = 2_000;

const sampleOf = ({ isConnected, health }: FollowedRelay): Sample =>
  isConnected ? (health === "healthy" ? "up" : "part") : "down";

export class RelayHistory {
  readonly #samples = new Map<string, Sample[]>();

  /** Relays that are followed no longer are forgotten. */
  look(relays: readonly FollowedRelay[]): void {
    const followed = new Set(relays.map(({ url }) => url));
    for (const url of this.#samples.keys()) if (!followed.has(url)) this.#samples.delete(url);
    for (const relay of relays.slice(0, maxRelays)) {
      const samples = this.#samples.get(relay.url) ?? [];
      samples.push(sampleOf(relay));
      if (samples.length > samplesKept) samples.shift();
      this.#samples.set(relay.url, samples);
    }
  }

  /** Oldest first. */
  of(url: string): readonly Sample[] {
    return this.#samples.get(url) ?? [];
  }
}
