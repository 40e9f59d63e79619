// Collections as several rooms need them: sets by key that keep nothing for keys without members, and lists in groups.

export class SetsByKey<Key, Value> extends Map<Key, Set<Value>> {
  add(key: Key, value: Value): void {
    const members = this.get(key);
    if (members) members.add(value);
    else this.set(key, new Set([value]));
  }

  remove(key: Key, value: Value): void {
    const members = this.get(key);
    members?.delete(value);
    if (members?.size === 0) this.delete(key);
  }
}

/** The list in order, in groups of `size`; the last may be smaller. */
export const groupsOf = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
