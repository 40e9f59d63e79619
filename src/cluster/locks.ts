// Names of the advisory locks of a cluster. PostgreSQL knows them by two numbers: the first is the cluster's, made from its
// schema, so that two clusters in one database do not wait for each other.

import { createHash } from "node:crypto";

const numberOf = (text: string): number => createHash("sha256").update(text).digest().readInt32BE(0);

/** The two numbers, as they stand in a statement. */
export type LockNumbers = `${number}, ${number}`;

export interface ClusterLocks {
  /** Making and changing tables. */
  readonly schema: LockNumbers;
  /** The order of commits. */
  readonly log: LockNumbers;
  readonly leader: LockNumbers;
  /** Held by the machine that has that identity. */
  node(id: string): LockNumbers;
  /** Held by the machine that people call so. */
  name(name: string): LockNumbers;
  /** Held by the machine that writes what came for a repository. */
  repository(key: string): LockNumbers;
  /** Shared by those to whom something for a repository is coming. */
  atWork(key: string): LockNumbers;
}

export function clusterLocks(schema: string): ClusterLocks {
  const cluster = numberOf(`holdfast ${schema}`);
  const nodes = numberOf(`holdfast ${schema} nodes`);
  return {
    schema: `${cluster}, 0`,
    log: `${cluster}, 1`,
    leader: `${cluster}, 2`,
    node: (id) => `${nodes}, ${numberOf(id)}`,
    name: (name) => `${numberOf(`holdfast ${schema} names`)}, ${numberOf(name)}`,
    repository: (key) => `${numberOf(`holdfast ${schema} repositories`)}, ${numberOf(key)}`,
    atWork: (key) => `${numberOf(`holdfast ${schema} pushes`)}, ${numberOf(key)}`,
  };
}
