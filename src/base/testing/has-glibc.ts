/** What is asked of glibc itself can be tested only where there is one. */
export const hasGlibc = "glibcVersionRuntime" in (process.report.getReport() as { readonly header: object }).header;
