// Limits of the relay side (relay.md). Those a client can run into are stated in the information document.

import { limit, type SettingTable } from "../setting.js";
import { bytes, days, seconds, wholeNumber } from "../value-kinds.js";

const atLeastOne = wholeNumber({ min: 1 });
const atLeastOneMebibyte = bytes({ min: 2 ** 20 });
// What the parser of events and the store take at most, whatever is set here.
const largestEventBytes = 2 ** 20;
const mostDeletionTargets = 1_000;

export const relaySettings = {
  NGIT_MAX_CONNECTIONS: limit(atLeastOne, "10000", "WebSocket connections in all."),
  NGIT_MAX_CONNECTIONS_PER_IP: limit(atLeastOne, "200", "WebSocket connections from one IP (IPv6: one /64)."),
  NGIT_MAX_MESSAGE_BYTES: limit(bytes({ min: 65_536, max: 2 ** 28 }), "5MiB", "One message from a client."),
  NGIT_MAX_EVENT_BYTES: limit(bytes({ min: 4096, max: largestEventBytes }), "1MiB", "One event."),
  NGIT_MAX_EVENT_TAGS: limit(atLeastOne, "10000", "Tags of one event."),
  NGIT_MAX_SUBSCRIPTIONS_PER_CONNECTION: limit(atLeastOne, "300", "Open subscriptions of one connection.", [
    "NGIT_RELAY_MAX_SUBSCRIPTIONS",
  ]),
  NGIT_MAX_SUBSCRIPTION_ID_CHARS: limit(wholeNumber({ min: 64, max: 1000 }), "250", "Length of a subscription id."),
  NGIT_MAX_FILTERS_PER_REQ: limit(atLeastOne, "100", "Filters in one REQ or COUNT."),
  NGIT_MAX_FILTER_VALUES: limit(atLeastOne, "5000", "Values in one filter, all its lists together."),
  NGIT_MAX_LIVE_VALUES_PER_CONNECTION: limit(
    atLeastOne,
    "200000",
    "Filter values of all open subscriptions of one connection.",
  ),
  NGIT_MAX_LIMIT: limit(
    atLeastOne,
    "5000",
    "Most events one filter answers, and the answer to filters by id or reference without a limit.",
    ["NGIT_RELAY_FILTER_LIMIT"],
  ),
  NGIT_DEFAULT_LIMIT: limit(atLeastOne, "500", "Events that other filters without a limit answer."),
  NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: limit(
    atLeastOne,
    "600",
    "Events one connection may send in a minute; large ones, and deletions of many, count as several.",
  ),
  NGIT_EVENTS_PER_MINUTE_PER_IP: limit(atLeastOne, "3000", "Events one IP may send in a minute."),
  NGIT_EVENTS_PER_DAY_PER_AUTHOR_BYTES: limit(
    atLeastOneMebibyte,
    "256MiB",
    "Bytes of events that are kept in a day for one author.",
  ),
  NGIT_EVENTS_PER_DAY_PER_REPOSITORY_BYTES: limit(
    atLeastOneMebibyte,
    "512MiB",
    "Bytes of events that are kept in a day about one repository; its owner's do not count.",
  ),
  NGIT_EVENTS_PER_DAY_PER_IP_BYTES: limit(
    atLeastOneMebibyte,
    "512MiB",
    "Bytes of events that are kept in a day from one IP (IPv6: one /64).",
  ),
  NGIT_RECEIVE_PER_SECOND_PER_IP_BYTES: limit(
    bytes({ min: 2 ** 20 }),
    "16MiB",
    "What is read from the WebSockets of one IP in a second; four times as much at once.",
  ),
  NGIT_MAX_FUTURE_SECS: limit(seconds(), "15m", "How far ahead of our clock an event's created_at may be."),
  NGIT_MAX_DELETION_TARGETS: limit(
    wholeNumber({ min: 1, max: mostDeletionTargets }),
    "1000",
    "Targets of one deletion request.",
  ),
  NGIT_MAX_GRASP_LISTS: limit(wholeNumber(), "100000", "User grasp lists (kind 10317) kept in all."),
  NGIT_GRASP_LISTS_PER_HOUR_PER_IP: limit(atLeastOne, "60", "User grasp lists one IP may send in an hour."),
  NGIT_NEGENTROPY_MAX_FRAME_BYTES: limit(bytes({ min: 4096 }), "500kB", "One negentropy message."),
  NGIT_NEGENTROPY_MAX_SESSIONS_PER_CONNECTION: limit(
    wholeNumber(),
    "20",
    "Open negentropy sessions of one connection.",
  ),
  NGIT_NEGENTROPY_IDLE_SECS: limit(
    seconds({ min: 1 }),
    "60",
    "A negentropy session that is silent this long is closed.",
  ),
  NGIT_NEGENTROPY_MAX_RECORDS: limit(atLeastOne, "1000000", "Events one negentropy session may cover."),
  NGIT_NEGENTROPY_TOTAL_MAX_RECORDS: limit(
    atLeastOne,
    "3000000",
    "Events all open negentropy sessions may cover together.",
  ),
  NGIT_SEND_PAUSE_BYTES: limit(
    bytes({ min: 4096 }),
    "1MiB",
    "Unsent bytes of a connection at which reading the store for it pauses.",
  ),
  NGIT_SEND_MAX_BYTES: limit(bytes({ min: 65_536 }), "32MiB", "Unsent bytes at which a connection is closed."),
  NGIT_SEND_TOTAL_MAX_BYTES: limit(
    atLeastOneMebibyte,
    "96MiB",
    "Unsent bytes of all connections at which the slowest are closed; a third of it for one IP.",
  ),
  NGIT_RECEIVE_TOTAL_MAX_BYTES: limit(
    bytes({ min: 2 ** 24 }),
    "64MiB",
    "Unfinished and unanswered messages of all connections, in bytes; a third of it for one IP.",
  ),
  NGIT_FILTERS_TOTAL_MAX_BYTES: limit(
    atLeastOneMebibyte,
    "96MiB",
    "What the open subscriptions of all connections may hold; a third of it for one IP.",
  ),
  NGIT_SEND_STALL_SECS: limit(seconds({ min: 1 }), "60", "A client that takes nothing for this long is closed."),
  NGIT_PING_INTERVAL_SECS: limit(seconds({ min: 1 }), "30", "Time between pings to a client."),
  NGIT_UNHOST_GRACE_DAYS: limit(days(), "90", "How long the data of a repository that left or was deleted is kept."),
} satisfies SettingTable;
