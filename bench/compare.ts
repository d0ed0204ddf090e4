import { percentile, percentiles, print } from './figures.ts';

/**
 * Milliseconds of the same operation, measured alternately over bare CRI (`floor`) and through a
 * kubelet (`ours`).
 */
export interface Sides {
  readonly floor: number[];
  readonly ours: number[];
  /**
   * A minimal pod over bare CRI, without the settings that every kubelet must request; measured
   * only for comparison.
   */
  readonly barest?: number[];
}

export async function timed<T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> {
  const start = performance.now();
  const value = await work();
  return { ms: performance.now() - start, value };
}

export function compare(what: string, { floor, ours, barest }: Sides, target: string): void {
  print(`${what}, bare CRI`, percentiles(floor));
  if (barest !== undefined) print(`${what}, bare CRI, the barest pod`, percentiles(barest));
  print(`${what}, kubelet`, percentiles(ours));
  print('', `${difference(ours, floor)} (target ${target})`);
  if (barest !== undefined) print('', `${difference(ours, barest)} of the barest pod`);
}

function difference(ours: readonly number[], floor: readonly number[]): string {
  const over = (share: number) => (percentile(ours, share) - percentile(floor, share)).toFixed(0);
  const ratio = (percentile(ours, 0.5) / percentile(floor, 0.5)).toFixed(2);
  return `p50 + ${over(0.5)} ms, p99 + ${over(0.99)} ms, p50 ${ratio} x floor`;
}
