// What one relay has seen of us, as a relay would note it down. Data only: each file of a property reads and writes
// its part.

export class Sighting {
  // watch.ts
  connected = false;
  dialing = false;
  connectedMs = 0;
  readonly live = new Map<string, number>();
  readonly history = new Set<string>();
  /** When NEG-OPEN was sent, or the last message of the session came; undefined while our own store is read. */
  readonly sessions = new Map<string, number | undefined>();
  sessionBeganMs = 0;
  failures = 0;
  firstFailureMs = 0;
  dialNotBeforeMs = 0;
  askNotBeforeMs = 0;
  readonly eosed = new Set<string>();
  /** A negentropy session that failed for a reason a relay can give. */
  negentropyFailed = false;
  // full-syncs.ts
  fullSyncs = new FullSyncs();
}

/** Full syncs this relay was asked for, and what since the last one would excuse another. */
export class FullSyncs {
  lastMs = Number.NEGATIVE_INFINITY;
  /** The same, or when it went on after a lost link. */
  beganMs = Number.NEGATIVE_INFINITY;
  /** The last that was not called for by a change of ours, which need not be a whole one. */
  wholeMs = Number.NEGATIVE_INFINITY;
  /** The question for all announcements that nothing has answered yet. */
  question: string | undefined;
  isAnswered = true;
  /** Announcements are being asked for; one of those questions failed and will be asked again. */
  isAtAnnouncements = false;
  owesAnnouncements = false;
  /** One is under way: nothing outstanding ends it. */
  isRunning = false;
  /** Something asked for was refused, cut off or not answered. */
  wasRefused = false;
  /** Our own server was in trouble with what the relay sent. */
  wasTroubled = false;
  /** When that was last, and how many full syncs in a row it called for. */
  troubleMs = Number.NEGATIVE_INFINITY;
  resyncs = 0;
  /** Our process stood still, a clock jumped, lists changed. */
  wasDisturbed = false;
  linkMs = Number.NEGATIVE_INFINITY;
  /** The last moment at which the link was open and nothing outstanding. */
  settledMs = Number.NEGATIVE_INFINITY;
  /** How long the relay had been out of sight when the link was made. */
  gapMs = Number.POSITIVE_INFINITY;
  /** A repository began to be listed there. */
  listedMs = Number.NEGATIVE_INFINITY;
  requestsMs: number[] = [];
  refusalsMs: number[] = [];
}
