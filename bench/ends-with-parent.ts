// Imported first by every program that a benchmark starts: whoever asked for it may have been killed, and then nobody else
// would end it.

process.on("disconnect", () => process.exit(1));
