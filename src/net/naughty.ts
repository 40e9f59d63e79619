// Places that are wrong in a lasting way (no such name, bad certificate, not what was expected there) are left alone
// for a while. Pure: time is an argument; the caller keeps entries over restarts. event-sync.md "Health", Naughty.
// Never fed with temporary failures: callers pass only the kinds they mean to count.

/** Settings of these names. */
interface NaughtyRules {
  /** For how long it is left alone. */
  readonly naughtyListExpirationHours: number;
  /** So many failures over at least so long make it naughty. */
  readonly naughtyAfterFailures: number;
  readonly naughtyAfterSecs: number;
}

/** DNS failures of other places within this time say that it is our resolver. */
const ownResolverMs = 60_000;

interface NaughtyEntry {
  readonly place: string;
  readonly kind: string;
  readonly untilMs: number;
}

interface History {
  kind: string;
  failedAtMs: number[];
  untilMs: number | undefined;
}

export class NaughtyPlaces {
  readonly #rules: NaughtyRules;
  readonly #records = new Map<string, History>();
  #dnsFailures: { place: string; atMs: number }[] = [];

  /** `maxPlaces` are remembered; the oldest make room. */
  constructor(
    rules: NaughtyRules,
    private readonly maxPlaces = 10_000,
  ) {
    this.#rules = rules;
  }

  isNaughty(place: string, nowMs: number): boolean {
    const record = this.#records.get(place);
    if (record?.untilMs === undefined) return false;
    if (record.untilMs > nowMs) return true;
    // Re-armed: it starts with a clean sheet.
    this.#records.delete(place);
    return false;
  }

  /** Counts a lasting failure; the answer is the ban it caused, if it did. */
  failed(place: string, kind: string, isDns: boolean, nowMs: number): NaughtyEntry | undefined {
    if (this.isNaughty(place, nowMs)) return undefined;
    if (isDns && this.#isOurResolver(place, nowMs)) return undefined;
    let record = this.#records.get(place);
    if (record?.kind !== kind) record = { kind, failedAtMs: [], untilMs: undefined };
    record.failedAtMs.push(nowMs);
    // The first failure and the latest ones decide; a list of all would grow with every retry.
    if (record.failedAtMs.length > this.#rules.naughtyAfterFailures) record.failedAtMs.splice(1, 1);
    this.#remember(place, record);
    const first = record.failedAtMs[0] ?? nowMs;
    if (
      record.failedAtMs.length < this.#rules.naughtyAfterFailures ||
      nowMs - first < this.#rules.naughtyAfterSecs * 1_000
    )
      return undefined;
    record.untilMs = nowMs + this.#rules.naughtyListExpirationHours * 3_600_000;
    return { place, kind, untilMs: record.untilMs };
  }

  /** A temporary DNS failure never counts against its place, but it is evidence about our resolver. */
  dnsTrouble(place: string, nowMs: number): void {
    this.#isOurResolver(place, nowMs);
  }

  /** The place answered: what was wrong is wrong no longer. */
  worked(place: string): void {
    if (this.#records.get(place)?.untilMs === undefined) this.#records.delete(place);
  }

  restore(entry: NaughtyEntry): void {
    this.#remember(entry.place, { kind: entry.kind, failedAtMs: [], untilMs: entry.untilMs });
  }

  forgive(place: string): boolean {
    return this.#records.delete(place);
  }

  entries(nowMs: number): NaughtyEntry[] {
    return [...this.#records].flatMap(([place, { kind, untilMs }]) =>
      untilMs !== undefined && untilMs > nowMs ? [{ place, kind, untilMs }] : [],
    );
  }

  #remember(place: string, record: History): void {
    this.#records.delete(place);
    this.#records.set(place, record);
    if (this.#records.size <= this.maxPlaces) return;
    const oldest = this.#records.keys().next().value;
    if (oldest !== undefined) this.#records.delete(oldest);
  }

  /** Also takes back what others were charged with in this minute: they suffered from the same resolver. */
  #isOurResolver(place: string, nowMs: number): boolean {
    const since = nowMs - ownResolverMs;
    this.#dnsFailures = this.#dnsFailures.filter((past) => past.atMs > since);
    const others = this.#dnsFailures.filter((past) => past.place !== place);
    if (this.#dnsFailures.length < this.maxPlaces) this.#dnsFailures.push({ place, atMs: nowMs });
    for (const other of others) {
      const record = this.#records.get(other.place);
      if (record?.untilMs !== undefined || record?.kind !== "dns-missing") continue;
      record.failedAtMs = record.failedAtMs.filter((at) => at !== other.atMs);
    }
    return others.length > 0;
  }
}
