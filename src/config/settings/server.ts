// Settings of the server itself: where it listens, who it is, where its data is, who may see what (configuration.md).

import { limit, type SettingTable, setting } from "../setting.js";
import {
  basePath,
  domain,
  hostPort,
  listEntry,
  listOf,
  milliseconds,
  networkList,
  oneOf,
  onOff,
  origin,
  path,
  publicKey,
  secretKey,
  text,
  token,
  webUrl,
  wholeNumber,
} from "../value-kinds.js";

export const serviceSettings = {
  NGIT_DOMAIN: setting(domain(), {
    fallbackWords: "`localhost:<port>` when listening on loopback, required otherwise",
    help: "Host, port and base path of the public URL, as people write it in clone URLs.",
    example: "git.example.com",
  }),
  NGIT_BASE_PATH: setting(basePath(), {
    help: "Base path of the public URL, where it is not written in NGIT_DOMAIN.",
    example: "/grasp",
  }),
  NGIT_BIND_ADDRESS: setting(hostPort(), { fallback: "127.0.0.1:7334", help: "Address and port to listen on." }),
  NGIT_TRUSTED_PROXIES: setting(networkList(), {
    fallback: "loopback",
    reloadable: true,
    otherNames: ["NGIT_TRUSTED_PROXY_CIDRS"],
    help: "Networks whose X-Forwarded-For header is believed.",
    example: "loopback,10.0.0.0/8",
  }),
  NGIT_RELAY_OWNER_NSEC: setting(secretKey(), {
    fallbackWords: "generated into the data directory with mode 0600",
    secret: true,
    neverEmpty: true,
    help: "The server's own key: an nsec, hex, or file: and the path of a file that holds one. The systemd credential relay_owner_nsec comes before it.",
    example: "file:/run/secrets/holdfast-nsec",
  }),
  NGIT_ADMIN_NPUBS: setting(listOf(publicKey()), {
    fallbackWords: "the server key's npub",
    reloadable: true,
    help: "Who may use relay management (NIP-86) and the admin page.",
  }),
  NGIT_RELAY_NAME: setting(text(100), {
    fallbackWords: "`<domain> grasp relay`",
    help: "Name in the relay's information document and on its pages.",
  }),
  NGIT_RELAY_DESCRIPTION: setting(text(), {
    fallbackWords: "one sentence that names the domain",
    help: "Description in the information document and on the pages.",
  }),
  NGIT_RELAY_ICON: setting(webUrl(), { help: "URL of an icon for the information document." }),
  NGIT_RELAY_BANNER: setting(webUrl(), { help: "URL of a banner for the information document." }),
  NGIT_RELAY_CONTACT: setting(text(200), { help: "How to reach the operator, for instance mailto:me@example.com." }),
  NGIT_RELAY_POSTING_POLICY: setting(webUrl(), { help: "URL of a page that says what may be posted." }),
} satisfies SettingTable;

export const storageSettings = {
  NGIT_DATA_PATH: setting(path(), { fallback: "./data", help: "Parent of the two data directories." }),
  NGIT_GIT_DATA_PATH: setting(path(), { fallbackWords: "`git` under NGIT_DATA_PATH", help: "Git repositories." }),
  NGIT_RELAY_DATA_PATH: setting(path(), {
    fallbackWords: "`relay` under NGIT_DATA_PATH",
    help: "The event database and the generated server key.",
  }),
  NGIT_DATABASE_BACKEND: setting(oneOf(["lmdb", "memory", "postgres"]), {
    fallback: "lmdb",
    help: "Where events are kept: lmdb on disk, memory (lost at exit, writes nothing but repositories), or postgres, which makes this machine one of several.",
  }),
  NGIT_STARTUP_INTEGRITY_IDENTIFIERS: setting(listOf(listEntry()), {
    fallback: "",
    help: "Repositories that are checked (as `repos fsck` does) before the port opens: npub, npub/identifier or identifier.",
  }),
} satisfies SettingTable;

export const accessSettings = {
  NGIT_REPOSITORY_WHITELIST: setting(listOf(listEntry()), {
    fallback: "",
    reloadable: true,
    help: "If set, only these repositories are accepted: npub, npub/identifier or identifier.",
  }),
  NGIT_REPOSITORY_BLACKLIST: setting(listOf(listEntry()), {
    fallback: "",
    reloadable: true,
    help: "Repositories that are refused: npub, npub/identifier or identifier.",
  }),
  NGIT_EVENT_BLACKLIST: setting(listOf(publicKey()), {
    fallback: "",
    reloadable: true,
    help: "Authors whose events are refused, whatever they are.",
  }),
} satisfies SettingTable;

export const privateSettings = {
  NGIT_PRIVATE_MODE: setting(onOff(), {
    fallback: "false",
    help: "GRASP-08: everything here is for members only.",
  }),
  NGIT_PRIVATE_MEMBERS: setting(listOf(publicKey()), {
    fallback: "",
    reloadable: true,
    help: "Members of a private service, beside its own key and the admins. `holdfast lists` adds more at run time.",
    example: "npub1…,npub1…",
  }),
  NGIT_PRIVATE_PUBLIC_ORIGIN: setting(origin(), {
    fallbackWords: "that of NGIT_DOMAIN",
    help: "Scheme, host and port that members sign their git requests for, where it differs from NGIT_DOMAIN.",
    example: "https://git.example.com",
  }),
  NGIT_PRIVATE_PEERS: setting(onOff(), {
    fallback: "false",
    help: "Keys that run the other relays of accepted announcements count as members: an announcement then widens the membership.",
  }),
} satisfies SettingTable;

export const observabilitySettings = {
  NGIT_LOG_LEVEL: setting(oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]), {
    fallback: "info",
    reloadable: true,
    help: "How much is logged.",
  }),
  NGIT_LOG_FORMAT: setting(oneOf(["text", "json"]), {
    fallbackWords: "text on a terminal, json otherwise",
    help: "Log lines for people or for programs. They go to standard error.",
  }),
  NGIT_METRICS_ENABLED: setting(onOff(), { fallback: "true", help: "Serve /metrics at all." }),
  NGIT_METRICS_BIND_ADDRESS: setting(hostPort(), { help: "Serve /metrics on an address of its own." }),
  NGIT_METRICS_TOKEN: setting(token(), { secret: true, help: "Bearer token with which anyone may read /metrics." }),
  NGIT_METRICS_PUBLIC: setting(onOff(), {
    fallback: "false",
    help: "Let everyone read /metrics. Otherwise: loopback peers without X-Forwarded-For, and holders of the token.",
  }),
  NGIT_HEALTH_ANSWER_MS: setting(milliseconds(), {
    fallback: "1000",
    testFallback: "0",
    help: "How long an answer of /readyz and /metrics is given again before it is worked out anew.",
  }),
  NGIT_METRICS_CONNECTION_PER_IP_ABUSE_THRESHOLD: limit(
    wholeNumber({ min: 1 }),
    "10",
    "Connections from one IP above which it counts as an abuser in the metrics.",
  ),
  NGIT_METRICS_TOP_N_REPOS: limit(wholeNumber({ max: 1000 }), "10", "Repositories named in the traffic metric."),
  NGIT_METRICS_MAX_RELAY_LABELS: limit(
    wholeNumber(),
    "200",
    "Relays with a label of their own; the quietest share `other`.",
  ),
  NGIT_METRICS_MAX_DOMAIN_LABELS: limit(
    wholeNumber(),
    "100",
    "Git hosts with a label of their own; the rest share `other`.",
  ),
} satisfies SettingTable;

export const testSettings = {
  NGIT_TEST: setting(onOff(), {
    fallback: "false",
    help: "For test suites: short intervals, and loopback addresses may be dialled.",
  }),
  NGIT_TEST_LISTENER_FD: setting(wholeNumber({ min: 3, max: 65_535 }), {
    help: "With NGIT_TEST=1: the number of an open file that is a listening socket, used instead of NGIT_BIND_ADDRESS.",
  }),
  NGIT_ALLOW_PRIVATE_ADDRESSES: setting(onOff(), {
    fallback: "false",
    otherNames: ["NGIT_SYNC_ALLOW_NON_GLOBAL_TARGETS"],
    help: "Let the server dial loopback and private addresses that strangers' events name. Only for closed networks.",
  }),
} satisfies SettingTable;
