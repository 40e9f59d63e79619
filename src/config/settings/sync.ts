// Keeping events in step with other relays (event-sync.md).

import { limit, type SettingTable, setting } from "../setting.js";
import {
  bytes,
  bytesPerSecond,
  days,
  hours,
  hoursOfDay,
  listOf,
  milliseconds,
  onOff,
  percent,
  relayUrl,
  seconds,
  wholeNumber,
} from "../value-kinds.js";

const atLeastOne = wholeNumber({ min: 1 });

export const syncSettings = {
  NGIT_SYNC_BOOTSTRAP_RELAY_URL: setting(listOf(relayUrl()), {
    fallback: "",
    reloadable: true,
    help: "Relays that are always followed.",
    example: "wss://relay.example.com,relay.example.org",
  }),
  NGIT_SYNC_BATCH_WINDOW_MS: setting(milliseconds(), {
    fallback: "5000",
    testFallback: "200",
    help: "How long new repositories and roots collect before requests are made for them.",
  }),
  NGIT_SYNC_STARTUP_DELAY_SECS: limit(seconds(), "0", "Wait before history after a start."),
  NGIT_SYNC_RECONNECT_DELAY_SECS: limit(seconds(), "0", "Wait before history after a reconnect."),
  NGIT_SYNC_STARTUP_JITTER_MS: setting(milliseconds(), {
    fallback: "2000",
    testFallback: "200",
    help: "Dials at start are spread over this time.",
  }),
  NGIT_SYNC_RECONNECT_LOOKBACK_DAYS: setting(days({ min: 1 }), {
    reloadable: true,
    help: "Look back this far after a quick reconnect, instead of NGIT_SYNC_QUICK_LOOKBACK_SECS.",
  }),
  NGIT_SYNC_QUICK_LOOKBACK_SECS: limit(seconds({ min: 1 }), "1h", "Look back this far after a quick reconnect."),
  NGIT_SYNC_LIVE_LOOKBACK_SECS: limit(
    seconds({ min: 1 }),
    "1h",
    "Look back this far where a relay refuses live filters with limit 0; other servers release events late.",
  ),
  NGIT_SYNC_STALE_AFTER_SECS: limit(
    seconds({ min: 1 }),
    "15m",
    "Away from a relay for longer than this: fetch everything anew.",
  ),
  NGIT_SYNC_DAILY_MIN_HOURS: limit(hours({ min: 1 }), "23", "Earliest time of a relay's next full comparison …"),
  NGIT_SYNC_DAILY_MAX_HOURS: limit(hours({ min: 1 }), "25", "… and the latest; a random time between."),
  NGIT_SYNC_QUIET_HOURS: setting(hoursOfDay(), {
    reloadable: true,
    help: "Hours of the day (UTC) in which full comparisons are made where possible, such as 2-6. Any hour if not set.",
    example: "2-6",
  }),
  NGIT_SYNC_MAX_FULL_SYNCS: limit(atLeastOne, "16", "Relays compared in full at the same time; others wait."),
  NGIT_SYNC_BASE_BACKOFF_SECS: limit(
    seconds({ min: 1 }),
    "5",
    "Wait after the first failure to connect; doubles each time.",
  ),
  NGIT_SYNC_MAX_BACKOFF_SECS: limit(seconds({ min: 1 }), "3600", "Longest wait between two tries."),
  NGIT_SYNC_STABLE_LINK_SECS: limit(
    seconds({ min: 1 }),
    "5m",
    "A link that lasted this long ends with a clean record.",
  ),
  NGIT_SYNC_DEAD_AFTER_HOURS: limit(hours({ min: 1 }), "24", "A relay that failed for this long is dead."),
  NGIT_SYNC_DEAD_RETRY_HOURS: limit(hours({ min: 1 }), "24", "Time between tries of a dead relay."),
  NGIT_SYNC_DISCONNECT_CHECK_INTERVAL_SECS: limit(
    seconds({ min: 1 }),
    "60",
    "Time between looks for relays nothing needs any more.",
  ),
  NGIT_SYNC_RATE_LIMIT_PAUSE_SECS: limit(
    seconds({ min: 1 }),
    "65",
    "No new request to a relay that said it is rate-limiting us.",
  ),
  NGIT_SYNC_CONCURRENT_DIALS: limit(atLeastOne, "32", "Connections being opened at the same time."),
  NGIT_SYNC_DIAL_TIMEOUT_SECS: limit(seconds({ min: 1 }), "10", "Longest time to open a connection."),
  NGIT_SYNC_PING_INTERVAL_SECS: limit(seconds({ min: 1 }), "30", "Time between pings to a relay."),
  NGIT_SYNC_SILENT_LINK_SECS: limit(seconds({ min: 1 }), "60", "A link without a frame for this long is dead."),
  NGIT_NAUGHTY_LIST_EXPIRATION_HOURS: limit(
    hours({ min: 1 }),
    "12",
    "How long a relay or git host that is plainly broken is left alone.",
  ),
  NGIT_NAUGHTY_AFTER_FAILURES: limit(atLeastOne, "3", "Failures of one kind that make it so …"),
  NGIT_NAUGHTY_AFTER_SECS: limit(seconds(), "10m", "… over at least this long."),
} satisfies SettingTable;

export const syncRequestSettings = {
  NGIT_SYNC_MAX_FILTERS: limit(atLeastOne, "70", "Live filters at one relay."),
  NGIT_SYNC_MAX_TAGS_PER_FILTER: limit(atLeastOne, "100", "Values in one filter."),
  NGIT_SYNC_CONSOLIDATED_TAGS_PER_FILTER: limit(
    atLeastOne,
    "500",
    "Values in one filter when the filters would become too many.",
  ),
  NGIT_SYNC_MAX_FILTERS_PER_REQ: limit(
    atLeastOne,
    "10",
    "Filters in one REQ to a relay that does not state its limit.",
  ),
  NGIT_SYNC_MAX_FRAME_BYTES: limit(bytes({ min: 4096 }), "100kB", "One message to a relay."),
  NGIT_SYNC_MAX_SHARED_VALUE_BYTES: limit(bytes(), "255", "Longer values get a filter of their own."),
  NGIT_SYNC_MAX_STATE_IDENTIFIERS: limit(
    atLeastOne,
    "1000",
    "More repositories than this: ask bootstrap relays for all states.",
  ),
  NGIT_SYNC_ROTATE_ROOTS_HOURS: limit(hours({ min: 1 }), "6", "Roots without a live filter are asked for this often."),
  NGIT_SYNC_ROTATE_REPOS_HOURS: limit(
    hours({ min: 1 }),
    "1",
    "Repositories without a live filter are asked for this often.",
  ),
  NGIT_SYNC_DISABLE_NEGENTROPY: setting(onOff(), {
    fallback: "false",
    reloadable: true,
    help: "Fetch history by REQ only.",
  }),
  NGIT_SYNC_NEGENTROPY_SILENCE_SECS: limit(
    seconds({ min: 1 }),
    "10",
    "A relay silent for this long does not speak negentropy.",
  ),
  NGIT_SYNC_NEGENTROPY_MAX_FAILURES: limit(atLeastOne, "3", "Failures in a row after which it is not tried …"),
  NGIT_SYNC_NEGENTROPY_RETRY_HOURS: limit(hours({ min: 1 }), "24", "… for this long."),
  NGIT_SYNC_HISTORY_SUBSCRIPTIONS: limit(atLeastOne, "4", "History subscriptions at one relay at the same time."),
  NGIT_SYNC_BATCH_DELAY_MS: limit(milliseconds(), "0", "Pause between two batches of history from one relay."),
  NGIT_SYNC_BYTES_PER_SEC: setting(bytesPerSecond({ min: 1000 }), {
    reloadable: true,
    help: "History is downloaded no faster than this, over all relays. Not limited if not set.",
  }),
  NGIT_SYNC_FETCH_IDS: limit(atLeastOne, "100", "Missing events fetched by one request."),
  NGIT_SYNC_PAGE_EVENTS: limit(atLeastOne, "500", "Events a page from a relay that does not state its limit."),
  NGIT_SYNC_HISTORY_SILENCE_SECS: limit(
    seconds({ min: 1 }),
    "60",
    "A history request silent for this long has failed.",
  ),
  NGIT_SYNC_PAGE_TOTAL_SECS: limit(seconds({ min: 1 }), "10m", "Longest time for one page."),
  NGIT_SYNC_RETRY_BASE_SECS: limit(
    seconds({ min: 1 }),
    "5",
    "Wait before failed history is asked for again; doubles each time.",
  ),
  NGIT_SYNC_RETRY_MAX_SECS: limit(seconds({ min: 1 }), "30", "Longest such wait."),
  NGIT_SYNC_ITEM_MAX_FAILURES: limit(atLeastOne, "3", "Failures of one item that mark its relay."),
} satisfies SettingTable;

export const outboxSettings = {
  NGIT_SYNC_PLUS_ENABLED: setting(onOff(), {
    fallback: "true",
    reloadable: true,
    help: "Gather what participants of hosted repositories wrote only to their own relays (GRASP-03). A private service never does.",
  }),
  NGIT_USER_INDEX_RELAYS: setting(listOf(relayUrl()), {
    fallbackWords: "three public ones; none with NGIT_TEST=1 or a loopback domain",
    reloadable: true,
    help: "Relays that are asked where people write (NIP-65 lists), besides the repositories' own.",
    example: "wss://purplepag.es,wss://index.hzrd149.com,wss://indexer.coracle.social",
  }),
  NGIT_SYNC_PLUS_FALLBACK_RELAYS: setting(listOf(relayUrl()), {
    fallback: "",
    reloadable: true,
    help: "Relays that are asked for the lists, and for the writings, of people no list was found of.",
    example: "wss://relay.example.com",
  }),
  NGIT_PUBLISH_PROFILE: setting(onOff(), {
    fallback: "false",
    help: "Send the server's own profile and relay list to the index relays too, and not only to its own relay.",
  }),
} satisfies SettingTable;

export const syncBudgetSettings = {
  NGIT_SYNC_MAX_RELAYS: limit(atLeastOne, "1000", "Relays followed in all."),
  NGIT_SYNC_MAX_RELAYS_PER_REPOSITORY: limit(atLeastOne, "20", "Relays taken from one repository's announcement."),
  NGIT_SYNC_MAX_RELAYS_PER_HOST: limit(atLeastOne, "3", "Relays on one host."),
  NGIT_SYNC_MAX_RELAYS_PER_OWNER: limit(atLeastOne, "50", "Relays one owner's repositories may add."),
  NGIT_SYNC_MAX_RELAYS_PER_WAITING: limit(wholeNumber(), "5", "Relays taken from a waiting announcement."),
  NGIT_SYNC_MAX_RELAYS_FOR_WAITING: limit(wholeNumber(), "200", "Relays dialled for all waiting announcements."),
  NGIT_SYNC_MAX_EVENTS_PER_REPOSITORY_PER_DAY: limit(
    atLeastOne,
    "20000",
    "New events sync takes for one repository in a day.",
  ),
  NGIT_SYNC_MAX_EVENTS_PER_RELAY_PER_DAY: limit(
    atLeastOne,
    "1000000",
    "New events sync takes from one relay in a day.",
  ),
  NGIT_SYNC_REFUSED_SAMPLE_EVENTS: limit(atLeastOne, "10000", "Of this many events from one relay …"),
  NGIT_SYNC_REFUSED_MAX_PERCENT: limit(percent(), "90", "… more than this refused pauses the relay …"),
  NGIT_SYNC_REFUSED_PAUSE_SECS: limit(seconds({ min: 1 }), "1h", "… for this long."),
  NGIT_REJECTED_HOT_CACHE_DURATION_SECS: limit(
    seconds(),
    "120",
    "How long a refused event is kept to be judged again.",
  ),
  NGIT_REJECTED_HOT_MAX_EVENTS: limit(wholeNumber(), "10000", "Refused events kept that way."),
  NGIT_REJECTED_COLD_INDEX_EXPIRY_SECS: limit(seconds(), "604800", "How long its id is remembered."),
  NGIT_REJECTED_COLD_MAX_EVENTS: limit(wholeNumber(), "1000000", "Ids remembered that way."),
} satisfies SettingTable;
