// Kinds this server knows by name (NIP-01, NIP-09, NIP-34, NIP-62, GRASP).

export const kinds = {
  profile: 0,
  contacts: 3,
  deletion: 5,
  vanish: 62,
  comment: 1111,
  patch: 1617,
  pullRequest: 1618,
  pullRequestUpdate: 1619,
  issue: 1621,
  relayList: 10_002,
  graspList: 10_317,
  auth: 22_242,
  httpAuth: 27_235,
  announcement: 30_617,
  state: 30_618,
} as const;

/** Events that begin a thread about a repository; sync follows what tags them. */
export const rootKinds: readonly number[] = [kinds.patch, kinds.pullRequest, kinds.pullRequestUpdate, kinds.issue];

/** Events that are served only together with git data of their own. */
export const gitDataKinds: ReadonlySet<number> = new Set([kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

const named = new Set<number>([...Object.values(kinds), 1, 7, 1622, 1624, 1630, 1631, 1632, 1633, 1985, 9735]);

/** A metric label: kinds nobody here has heard of share one, so that strangers cannot make labels. */
export const kindLabel = (kind: number): string => (named.has(kind) ? String(kind) : "other");
