import {
  formatDurationMs,
  formatQuantity,
  type Quantity,
  tryParseDurationMs,
  tryParseQuantity,
} from '../lib/index.ts';
import { describeOrigin, keyPath, type Origins } from './findings.ts';
import type { KubeletConfiguration } from './schema.ts';

/** The signals of pod evictions. */
export const evictionSignals = [
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
] as const;

export type EvictionSignal = (typeof evictionSignals)[number];

/** A quantity, or a percentage of the capacity from 0 to 100. */
export type ThresholdValue = { readonly quantity: Quantity } | { readonly percent: number };

export interface EvictionThreshold {
  readonly signal: EvictionSignal;
  readonly kind: 'hard' | 'soft';
  /** Pods are evicted when less than this value is available. */
  readonly value: ThresholdValue;
  /** How long the threshold must be exceeded before pods are evicted; 0 for a hard threshold. */
  readonly gracePeriodMs: number;
  readonly minimumReclaim: ThresholdValue | undefined;
}

export function isEvictionSignal(name: string): name is EvictionSignal {
  return (evictionSignals as readonly string[]).includes(name);
}

export function parseThreshold(text: string): ThresholdValue | undefined {
  if (!text.endsWith('%')) {
    const quantity = tryParseQuantity(text);
    return quantity === undefined ? undefined : { quantity };
  }
  const number = text.slice(0, -1);
  return /^[-+]?(\d+(\.\d*)?|\.\d+)$/.test(number) ? { percent: Number(number) } : undefined;
}

/**
 * Returns the eviction thresholds of a validated configuration; 0% and 100% disable a signal. A
 * memory threshold of the node also applies to the cgroup of all pods, if node allocatable is
 * enforced on it.
 */
export function evictionThresholds(config: KubeletConfiguration): readonly EvictionThreshold[] {
  const hard = thresholdsOf(config, 'hard', config.evictionHard);
  const soft = thresholdsOf(config, 'soft', config.evictionSoft);
  const ofNode = hard.find(({ signal }) => signal === 'memory.available');
  const ofPods = hard.find(({ signal }) => signal === 'allocatableMemory.available');
  if (ofNode === undefined || ofPods !== undefined || !config.enforceNodeAllocatable.includes('pods')) {
    return [...hard, ...soft];
  }
  return [...hard, { ...ofNode, signal: 'allocatableMemory.available' }, ...soft];
}

function thresholdsOf(
  config: KubeletConfiguration,
  kind: EvictionThreshold['kind'],
  written: Readonly<Record<string, string>>,
): EvictionThreshold[] {
  return Object.entries(written).flatMap(([signal, text]) => {
    const value = parseThreshold(text);
    if (!isEvictionSignal(signal) || value === undefined || isOff(value)) return [];
    const grace = kind === 'hard' ? '0s' : (config.evictionSoftGracePeriod[signal] ?? '0s');
    const minimumReclaim = parseThreshold(config.evictionMinimumReclaim[signal] ?? '');
    return [{ signal, kind, value, gracePeriodMs: tryParseDurationMs(grace) ?? 0, minimumReclaim }];
  });
}

function isOff(value: ThresholdValue): boolean {
  return 'percent' in value && (value.percent === 0 || value.percent === 100);
}

export interface EvictionRow {
  readonly signal: EvictionSignal;
  /** The hard threshold, as `100Mi` or `10%`; undefined when the signal is disabled. */
  readonly hard: string | undefined;
  readonly hardOrigin: string;
  readonly soft: string | undefined;
  readonly gracePeriod: string | undefined;
  readonly minimumReclaim: string | undefined;
}

/** Returns all signals, including disabled ones, as they are logged at start. */
export function evictionTable(config: KubeletConfiguration, origins: Origins): readonly EvictionRow[] {
  const active = evictionThresholds(config);
  return evictionSignals.map((signal) => {
    const hard = active.find((threshold) => threshold.signal === signal && threshold.kind === 'hard');
    const soft = active.find((threshold) => threshold.signal === signal && threshold.kind === 'soft');
    const reclaim = (hard ?? soft)?.minimumReclaim;
    return {
      signal,
      hard: hard && formatThreshold(hard.value),
      hardOrigin: describeOrigin(origins.of(keyPath('evictionHard', signal))),
      soft: soft && formatThreshold(soft.value),
      gracePeriod: soft && formatDurationMs(soft.gracePeriodMs),
      minimumReclaim: reclaim && formatThreshold(reclaim),
    };
  });
}

export function formatThreshold(value: ThresholdValue): string {
  return 'percent' in value ? `${value.percent}%` : formatQuantity(value.quantity);
}
