// What one setting is. Everything said about settings (checking, flags, --help, the reference page, the example file,
// the JSON schema, what may change while running) is read from values of this shape; nothing is said twice.

/** What came of a text: a value, or a sentence about each fault in it. */
export type Reading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly string[] };

/** How the text of a value is read. `words` completes the sentence "must be …". */
export interface ValueKind<T> {
  readonly words: string;
  readonly read: (text: string) => Reading<T>;
  /** An empty text means something (an empty list); for other kinds it means "not set". */
  readonly acceptsEmpty?: boolean;
  /** The flag may stand alone: `--push-strict`. */
  readonly isSwitch?: boolean;
  /** The unit that must end the setting's name, so that no number is without one. */
  readonly unit?: "MS" | "SECS" | "HOURS" | "DAYS" | "BYTES" | "BYTES_PER_SEC" | "PERCENT";
}

export interface Setting<T> {
  readonly kind: ValueKind<T>;
  readonly help: string;
  /** The default, as one would write it; undefined when it is none or worked out from other settings. */
  readonly fallback: string | undefined;
  /** The default in words, where it is worked out. */
  readonly fallbackWords: string | undefined;
  /** The default when NGIT_TEST=1. */
  readonly testFallback: string | undefined;
  /** May change at SIGHUP; everything else needs a restart. */
  readonly reloadable: boolean;
  /** Never printed. */
  readonly secret: boolean;
  /** Further flags for the same setting, those of its other names included. */
  readonly aliases: readonly string[];
  /** Names that other servers give it. Two names that say different things are a fault. */
  readonly otherNames: readonly string[];
  /** Set but empty is a fault, and not as if it were not set. */
  readonly neverEmpty: boolean;
  readonly example: string | undefined;
}

interface About {
  readonly help: string;
  readonly testFallback?: string;
  readonly reloadable?: boolean;
  readonly secret?: boolean;
  readonly aliases?: readonly string[];
  readonly otherNames?: readonly string[];
  readonly neverEmpty?: boolean;
  readonly example?: string;
}

type WithFallback = About & { readonly fallback: string };
type WithoutFallback = About & { readonly fallbackWords?: string };

export function setting<T>(kind: ValueKind<T>, about: WithFallback): Setting<T>;
export function setting<T>(kind: ValueKind<T>, about: WithoutFallback): Setting<T | undefined>;
export function setting<T>(kind: ValueKind<T>, about: WithFallback | WithoutFallback): Setting<T | undefined> {
  return {
    kind,
    help: about.help,
    fallback: "fallback" in about ? about.fallback : undefined,
    fallbackWords: "fallbackWords" in about ? about.fallbackWords : undefined,
    testFallback: about.testFallback,
    reloadable: about.reloadable ?? false,
    secret: about.secret ?? false,
    aliases: [...(about.aliases ?? []), ...(about.otherNames ?? []).map(flagName)],
    otherNames: about.otherNames ?? [],
    neverEmpty: about.neverEmpty ?? false,
    example: about.example,
  };
}

/** A limit: a number with a default that may change while running. */
export const limit = <T>(
  kind: ValueKind<T>,
  fallback: string,
  help: string,
  otherNames: readonly string[] = [],
): Setting<T> => setting(kind, { fallback, help, reloadable: true, otherNames });

export type SettingTable = Readonly<Record<`NGIT_${string}`, Setting<unknown>>>;

type Camel<Text extends string> = Text extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<Camel<Rest>>}`
  : Lowercase<Text>;

/** `NGIT_SYNC_MAX_FILTERS` → `syncMaxFilters`. */
type PropertyName<Name extends string> = Name extends `NGIT_${infer Rest}` ? Camel<Rest> : never;

export type ValuesOf<Table> = {
  readonly [Name in keyof Table & string as PropertyName<Name>]: Table[Name] extends Setting<infer T> ? T : never;
};

export const flagName = (name: string): string => name.slice("NGIT_".length).toLowerCase().replaceAll("_", "-");

export const propertyName = (name: string): string =>
  flagName(name).replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
