// Settings whose feature does not exist yet. Switching one on is refused at start, because a server that silently
// ignores it would not do what its operator believes. When a feature is built, its line goes.

import type { SettingName, SettingValues } from "./schema.js";

export interface NotBuilt {
  readonly name: SettingName;
  readonly feature: string;
  readonly isOn: (values: SettingValues) => boolean;
  /** Nothing can work with it, so that test suites are refused too and not only warned. */
  readonly alwaysRefused?: boolean;
}

export const notBuilt: readonly NotBuilt[] = [
  {
    name: "NGIT_DATABASE_BACKEND",
    feature: "the postgres backend",
    isOn: (values) => values.databaseBackend === "postgres",
    alwaysRefused: true,
  },
];
