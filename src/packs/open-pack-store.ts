// The pack store that the settings name. A kind's code is loaded when it is asked for: a server that is alone loads none.

import type { PackAccess } from "../config/cluster-place.js";
import type { PackStore } from "./port.js";

export async function openPackStore(place: PackAccess): Promise<PackStore> {
  if (place.type === "directory") {
    const { DirectoryPackStore } = await import("./directory.js");
    return new DirectoryPackStore(place.path);
  }
  const { BucketPackStore } = await import("./s3.js");
  return new BucketPackStore(place);
}
