// The one list of settings, by section. Everything else in this room and in the documentation is made from it.

import { flagName, propertyName, type Setting, type SettingTable, type ValuesOf } from "./setting.js";
import { clusterSettings } from "./settings/cluster.js";
import { archiveSettings, gitSettings, largeFileSettings, pushSettings } from "./settings/git.js";
import { huntSettings, purgatorySettings } from "./settings/purgatory.js";
import { relaySettings } from "./settings/relay.js";
import {
  accessSettings,
  observabilitySettings,
  privateSettings,
  serviceSettings,
  storageSettings,
  testSettings,
} from "./settings/server.js";
import { outboxSettings, syncBudgetSettings, syncRequestSettings, syncSettings } from "./settings/sync.js";

export const settings = {
  ...serviceSettings,
  ...storageSettings,
  ...clusterSettings,
  ...accessSettings,
  ...privateSettings,
  ...observabilitySettings,
  ...relaySettings,
  ...pushSettings,
  ...gitSettings,
  ...purgatorySettings,
  ...huntSettings,
  ...syncSettings,
  ...syncRequestSettings,
  ...syncBudgetSettings,
  ...outboxSettings,
  ...largeFileSettings,
  ...archiveSettings,
  ...testSettings,
} satisfies SettingTable;

export type SettingName = keyof typeof settings;
/** What the settings say, before anything is worked out from them. */
export type SettingValues = ValuesOf<typeof settings>;

const sectionTables: readonly (readonly [title: string, table: SettingTable])[] = [
  ["Service", serviceSettings],
  ["Storage", storageSettings],
  ["Several machines as one", clusterSettings],
  ["Who and what is accepted", accessSettings],
  ["Private service", privateSettings],
  ["Logs and metrics", observabilitySettings],
  ["Relay limits", relaySettings],
  ["Pushes and budgets", pushSettings],
  ["Serving git", gitSettings],
  ["Purgatory", purgatorySettings],
  ["Hunting for git data", huntSettings],
  ["Sync: connections", syncSettings],
  ["Sync: requests", syncRequestSettings],
  ["Sync: budgets", syncBudgetSettings],
  ["Sync: participants' own relays", outboxSettings],
  ["Large files", largeFileSettings],
  ["Archive and contributors", archiveSettings],
  ["Tests and closed networks", testSettings],
];

export interface NamedSetting extends Setting<unknown> {
  readonly name: SettingName;
  readonly property: keyof SettingValues;
  readonly flag: string;
}

interface Section {
  readonly title: string;
  readonly settings: readonly NamedSetting[];
}

const named = ([name, setting]: [string, Setting<unknown>]): NamedSetting => ({
  ...setting,
  name: name as SettingName,
  property: propertyName(name) as keyof SettingValues,
  flag: flagName(name),
});

export const sections: readonly Section[] = sectionTables.map(([title, table]) => ({
  title,
  settings: Object.entries(table).map(named),
}));

export const allSettings: readonly NamedSetting[] = sections.flatMap((section) => section.settings);

const byName: ReadonlyMap<string, NamedSetting> = new Map(
  allSettings.flatMap((item) => [item.name, ...item.otherNames].map((name) => [name, item])),
);

/** By its name, or by one that another server gives it. */
export const settingNamed = (name: string): NamedSetting | undefined => byName.get(name);
