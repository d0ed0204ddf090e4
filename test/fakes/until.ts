/**
 * Waits for a condition, which is checked after each activity of the process; fails after a
 * generous limit.
 */
export async function until(what: string, condition: () => boolean, limitMs = 60_000): Promise<void> {
  const startMs = performance.now();
  while (!condition()) {
    if (performance.now() - startMs > limitMs)
      throw new Error(`Waited ${limitMs} ms without success until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
