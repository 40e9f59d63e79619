// Whether data belongs to a private service (GRASP-08). The mark stands in the data, not in the settings: a command or a
// server that was started without NGIT_PRIVATE_MODE must still know.

import type { TableReader, Transaction } from "../store/port.js";

const privateMark = "private";

export const isPrivateData = async (reader: TableReader): Promise<boolean> =>
  (await reader.row("meta", privateMark)) !== undefined;

export function markPrivateData(tx: Transaction, isPrivate: boolean): void {
  if (isPrivate) tx.setRow("meta", privateMark, true);
  else tx.deleteRow("meta", privateMark);
}
