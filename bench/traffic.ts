// What the processes that make traffic are told and tell: one description of all kinds of it, so that `mixed` and `load`
// differ only in numbers.

export interface HostedRepository {
  readonly ownerHex: string;
  readonly secretHex: string;
  readonly npub: string;
  readonly identifier: string;
}

export type Traffic =
  | { readonly role: "events"; readonly connections: number; readonly perSecond: number }
  /** `kinds`: of the question that names no repository. */
  | {
      readonly role: "requests";
      readonly connections: number;
      readonly perSecond: number;
      readonly kinds?: readonly number[];
    }
  | { readonly role: "live"; readonly sockets: number; readonly subscriptions: number }
  | { readonly role: "negentropy"; readonly perSecond: number }
  | { readonly role: "pushes"; readonly perMinute: number; readonly folder: string }
  | { readonly role: "clones"; readonly perMinute: number; readonly folder: string };

export interface TrafficOrder {
  readonly port: number;
  readonly seconds: number;
  readonly repositories: readonly HostedRepository[];
  readonly traffic: readonly Traffic[];
}

export interface Measured {
  readonly operation: string;
  readonly count: number;
  readonly failures: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface TrafficResult {
  readonly measured: readonly Measured[];
  /** Ids of events that were answered with OK true. */
  readonly acknowledged: readonly string[];
  /** The last tip of main that a push to it was answered ok for, by npub/identifier. */
  readonly refs: Readonly<Record<string, string>>;
  /** Sockets that were closed by the server. */
  readonly closed: number;
}

export const addressOf = ({ ownerHex, identifier }: HostedRepository): string => `30617:${ownerHex}:${identifier}`;
export const nameOf = ({ npub, identifier }: HostedRepository): string => `${npub}/${identifier}`;
