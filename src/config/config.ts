// The configuration rooms are given: all settings, with what is worked out from several of them filled in.
// Pure: values in, configuration or problems out.

import { join } from "node:path";
import type { SettingName, SettingValues } from "./schema.js";
import { hostPortText } from "./value-kinds.js";

export type Origin = "flag" | "environment" | "file" | "default";

/** A fault in the configuration: which key, where it was written, what is wrong and what to write instead. */
export interface Problem {
  /** The key as the reader wrote it: `NGIT_…`, `--flag`, or a line of the file. */
  readonly key: string;
  readonly origin: Origin;
  /** What is wrong. Never contains the value of a secret. */
  readonly message: string;
  /** What to do about it. */
  readonly fix: string;
}

export const problemText = (problem: Problem): string => `${problem.key}: ${problem.message}. ${problem.fix}`;

interface WorkedOut {
  readonly domain: string;
  readonly relayName: string;
  readonly relayDescription: string;
  readonly gitDataPath: string;
  readonly relayDataPath: string;
  readonly logFormat: "text" | "json";
  readonly gitPackConcurrent: number;
  readonly userIndexRelays: readonly string[];
  /** Where systemd would have put the server's key (`LoadCredential=relay_owner_nsec:…`), whether it did or not. */
  readonly serverKeyCredential: string | undefined;
}

export type Config = Omit<SettingValues, keyof WorkedOut> & WorkedOut;

export interface Surroundings {
  /** Whether the log goes to a terminal. */
  readonly logIsTerminal: boolean;
  readonly cores: number;
  /** `CREDENTIALS_DIRECTORY`, as systemd sets it. */
  readonly credentialsDirectory?: string;
}

interface Completed {
  readonly config: Config;
  readonly problems: readonly Problem[];
}

/** GRASP-05: some announcements that do not list this server are mirrored. */
export const isArchiving = (
  config: Pick<Config, "archiveAll" | "archiveWhitelist" | "archiveGraspServices">,
): boolean => config.archiveAll || config.archiveWhitelist.length > 0 || config.archiveGraspServices.length > 0;

/** The name of the credential with the server's key. */
const keyCredential = "relay_owner_nsec";

/** Public relays that know where people write (NIP-65). */
const indexRelays = ["wss://purplepag.es", "wss://index.hzrd149.com", "wss://indexer.coracle.social"];

const pathOf = (domain: string): string => (domain.includes("/") ? domain.slice(domain.indexOf("/")) : "");

/** The public name: the domain, with the base path where that is said apart from it. */
function domainOf({ domain, bindAddress, basePath }: SettingValues): string {
  const host = domain ?? `localhost:${bindAddress.port}`;
  return pathOf(host) === "" ? `${host}${basePath ?? ""}` : host;
}

const isLocalName = (domain: string): boolean => /^(?:localhost|127\.|\[::1\])/.test(domain);

export function completeConfig(values: SettingValues, around: Surroundings): Completed {
  const domain = domainOf(values);
  const { credentialsDirectory } = around;
  const config: Config = {
    ...values,
    domain,
    relayName: values.relayName ?? `${domain} grasp relay`,
    relayDescription:
      values.relayDescription ?? `A Nostr relay and git host for the repositories announced at ${domain}.`,
    gitDataPath: values.gitDataPath ?? join(values.dataPath, "git"),
    relayDataPath: values.relayDataPath ?? join(values.dataPath, "relay"),
    logFormat: values.logFormat ?? (around.logIsTerminal ? "text" : "json"),
    gitPackConcurrent: values.gitPackConcurrent ?? Math.max(1, around.cores),
    userIndexRelays: values.userIndexRelays ?? (values.test || isLocalName(domain) ? [] : indexRelays),
    // A private service says nothing to relays that only strangers name, and nobody hears of it there.
    syncPlusEnabled: values.syncPlusEnabled && !values.privateMode,
    publishProfile: values.publishProfile && !values.privateMode,
    serverKeyCredential: credentialsDirectory === undefined ? undefined : join(credentialsDirectory, keyCredential),
  };
  return { config, problems: contradictions(values) };
}

const problem = (key: SettingName, message: string, fix: string): Problem => ({ key, origin: "default", message, fix });

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || host.startsWith("127.");

function contradictions(values: SettingValues): Problem[] {
  const problems: Problem[] = [];
  const { bindAddress } = values;
  if (values.domain === undefined && (!isLoopback(bindAddress.host) || bindAddress.port === 0)) {
    const where = `the server listens on ${hostPortText(bindAddress)}`;
    problems.push(
      problem(
        "NGIT_DOMAIN",
        `is required because ${where}`,
        "Set it to the public host name, for instance NGIT_DOMAIN=git.example.com",
      ),
    );
  }
  const domainPath = pathOf(values.domain ?? "");
  if (domainPath !== "" && values.basePath !== undefined && values.basePath !== domainPath) {
    problems.push(
      problem(
        "NGIT_BASE_PATH",
        `is ${values.basePath || "/"}, and NGIT_DOMAIN has the path ${domainPath}`,
        "Say the path in one of the two only",
      ),
    );
  }
  if (values.testListenerFd !== undefined && !values.test) {
    problems.push(
      problem("NGIT_TEST_LISTENER_FD", "is only for test suites", "Set NGIT_TEST=1 too, or use NGIT_BIND_ADDRESS"),
    );
  }
  problems.push(...clusterContradictions(values));
  if (values.privateMode && values.metricsPublic) {
    problems.push(
      problem(
        "NGIT_METRICS_PUBLIC",
        "shows everybody the metrics of a private service",
        "Remove it, and set NGIT_METRICS_TOKEN for the program that reads them",
      ),
    );
  }
  if (values.blossomRead && values.privateMode) {
    problems.push(problem("NGIT_BLOSSOM_READ", "shows everybody the large files of a private service", "Remove it"));
  }
  if (values.blossomRead && !values.lfsEnable) {
    problems.push(
      problem(
        "NGIT_BLOSSOM_READ",
        "serves large files, and NGIT_LFS_ENABLE is off",
        "Switch one of them on, or both off",
      ),
    );
  }
  const metrics = values.metricsBindAddress;
  if (metrics && metrics.port !== 0 && hostPortText(metrics) === hostPortText(bindAddress)) {
    problems.push(
      problem(
        "NGIT_METRICS_BIND_ADDRESS",
        "is the same as NGIT_BIND_ADDRESS",
        "Choose another port, or remove it to serve /metrics beside the rest",
      ),
    );
  }
  problems.push(
    ...ordered("NGIT_DEFAULT_LIMIT", values.defaultLimit, "NGIT_MAX_LIMIT", values.maxLimit),
    ...ordered("NGIT_MAX_EVENT_BYTES", values.maxEventBytes, "NGIT_MAX_MESSAGE_BYTES", values.maxMessageBytes),
    ...ordered("NGIT_SEND_PAUSE_BYTES", values.sendPauseBytes, "NGIT_SEND_MAX_BYTES", values.sendMaxBytes),
    ...ordered(
      "NGIT_SYNC_DAILY_MIN_HOURS",
      values.syncDailyMinHours,
      "NGIT_SYNC_DAILY_MAX_HOURS",
      values.syncDailyMaxHours,
    ),
    ...ordered(
      "NGIT_SYNC_BASE_BACKOFF_SECS",
      values.syncBaseBackoffSecs,
      "NGIT_SYNC_MAX_BACKOFF_SECS",
      values.syncMaxBackoffSecs,
    ),
  );
  return problems;
}

function clusterContradictions(values: SettingValues): Problem[] {
  const problems: Problem[] = [];
  const isCluster = values.databaseBackend === "postgres";
  if (isCluster && values.databaseUrl === undefined && values.databaseUrlFile === undefined) {
    problems.push(
      problem(
        "NGIT_DATABASE_URL",
        "is required with the postgres backend",
        "Set it to a postgres:// URL, or NGIT_DATABASE_URL_FILE to a file that holds one",
      ),
    );
  }
  if (values.databaseUrl !== undefined && values.databaseUrlFile !== undefined) {
    problems.push(problem("NGIT_DATABASE_URL_FILE", "is set beside NGIT_DATABASE_URL", "Remove one of the two"));
  }
  if (isCluster && values.packStore === undefined) {
    problems.push(
      problem(
        "NGIT_PACK_STORE",
        "is required with the postgres backend",
        "Set it to directory:<path> on a file system all machines share, or to s3:<bucket>",
      ),
    );
  }
  if (values.s3SecretAccessKey !== undefined && values.s3SecretAccessKeyFile !== undefined) {
    problems.push(
      problem("NGIT_S3_SECRET_ACCESS_KEY_FILE", "is set beside NGIT_S3_SECRET_ACCESS_KEY", "Remove one of the two"),
    );
  }
  const hasSecret = values.s3SecretAccessKey !== undefined || values.s3SecretAccessKeyFile !== undefined;
  if ((values.s3AccessKeyId !== undefined) !== hasSecret) {
    problems.push(
      problem(
        hasSecret ? "NGIT_S3_ACCESS_KEY_ID" : "NGIT_S3_SECRET_ACCESS_KEY",
        "is missing: a key has a name and a secret",
        "Set both, or neither to use what the machine has",
      ),
    );
  }
  return problems;
}

function ordered(small: SettingName, least: number, large: SettingName, most: number): Problem[] {
  if (least <= most) return [];
  return [problem(small, `is ${least} and so more than ${large} (${most})`, `Lower ${small} or raise ${large}`)];
}

/** `https://host/base`; plain http for a server that is only on this machine, unless its public origin says otherwise. */
export function publicUrls(config: Config): { readonly http: string; readonly relay: string } {
  const { domain, privatePublicOrigin } = config;
  if (privatePublicOrigin !== undefined) {
    const base = domain.includes("/") ? domain.slice(domain.indexOf("/")) : "";
    return { http: `${privatePublicOrigin}${base}`, relay: `${privatePublicOrigin.replace(/^http/, "ws")}${base}` };
  }
  const isLocal = isLocalName(domain);
  return { http: `http${isLocal ? "" : "s"}://${config.domain}`, relay: `ws${isLocal ? "" : "s"}://${config.domain}` };
}
