/** Formats the median and the tail percentiles of a series. */
export function percentiles(values: readonly number[]): string {
  const at = (share: number) => percentile(values, share);
  return `p50 ${at(0.5).toFixed(0)} ms, p90 ${at(0.9).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms`;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function print(what: string, figure: string): void {
  console.log(`${what.trim().padEnd(52)}  ${figure}`);
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
