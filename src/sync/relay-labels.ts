// Which relays have a label of their own in the metrics: the busiest, up to a limit; the quietest share `other`, so
// that strangers' announcements cannot make labels without end.

export const otherRelays = "other";

/** `bytes`: what went over each relay's links. */
export function relayLabels(
  relays: Iterable<string>,
  bytes: ReadonlyMap<string, number>,
  max: number,
): (relay: string) => string {
  const all = [...new Set(relays)];
  if (all.length <= max) return (relay) => relay;
  const busiest = all.sort((a, b) => (bytes.get(b) ?? 0) - (bytes.get(a) ?? 0) || (a < b ? -1 : 1)).slice(0, max);
  const own = new Set(busiest);
  return (relay) => (own.has(relay) ? relay : otherRelays);
}
