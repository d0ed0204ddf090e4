import assert from 'node:assert/strict';
import type { EvictionSignal, EvictionThreshold } from '../../src/config/index.ts';
import type { PodStatus } from '../../src/kinds/index.ts';
import type { KubeletSettings } from '../../src/kubelet/index.ts';
import { quantityOf } from '../../src/lib/index.ts';
import type { PressureCondition } from '../../src/resources/index.ts';
import { type ApiNode, runsUntilSigterm } from './api-node.ts';

export const mebi = 1024 ** 2;

export function hardThreshold(signal: EvictionSignal, amount: number): EvictionThreshold {
  const value = { quantity: quantityOf(amount, 'BinarySI') };
  return { signal, kind: 'hard', value, gracePeriodMs: 0, minimumReclaim: undefined };
}

/** The period for which a soft threshold must be exceeded before a pod is evicted. */
export function softThreshold(
  signal: EvictionSignal,
  amount: number,
  gracePeriodMs: number,
): EvictionThreshold {
  return { ...hardThreshold(signal, amount), kind: 'soft', gracePeriodMs };
}

/**
 * Enables eviction for these signals only, independently of the pressure on the machine, and checks
 * them often.
 */
export function evicting(...thresholds: readonly EvictionThreshold[]): Partial<KubeletSettings> {
  const eviction = {
    thresholds,
    transitionMs: 2_000,
    maxPodGraceSeconds: 3,
    localStorage: 'limited',
    memoryGuard: 'off',
    roundMs: 1_000,
  } as const;
  return { eviction };
}

export const isEvicted = ({ phase, reason }: PodStatus) => phase === 'Failed' && reason === 'Evicted';
export const isRunning = ({ phase }: PodStatus) => phase === 'Running';

/** Mounts the emptyDir volume that `onDisk` adds to the pod in a container of the pod. */
export const scratch = { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] };
export const onDisk = (sizeLimit?: string) => ({
  volumes: [{ name: 'scratch', emptyDir: sizeLimit === undefined ? {} : { sizeLimit } }],
});
export const filling = (path: string, mebibytes: number) =>
  `dd if=/dev/zero of=${path} bs=1M count=${mebibytes}; ${runsUntilSigterm}`;

/** Waits until the node reports only this pressure; a timeout error contains the pod's events. */
export async function comesUnderPressure(
  node: ApiNode,
  condition: PressureCondition,
  pod: string,
): Promise<void> {
  await node.until(condition, pod, () => node.inner.kubelet.control.pressures().length > 0 || undefined);
  assert.deepEqual(node.inner.kubelet.control.pressures(), [condition]);
}

export async function recovers(node: ApiNode, pod: string): Promise<void> {
  await node.until(
    'no pressure condition',
    pod,
    () => node.inner.kubelet.control.pressures().length === 0 || undefined,
  );
}

/** Returns the events of the node, each as its reason and message. */
export function nodeEvents(node: ApiNode): readonly string[] {
  const { entries } = node.inner.kubelet.state.node.story();
  return entries.flatMap((entry) => ('reason' in entry ? [`${entry.reason}: ${entry.message}`] : []));
}

export function evictions(node: ApiNode, ...pods: readonly string[]): readonly string[] {
  return pods.flatMap((name) => node.events(name)).filter((event) => event.startsWith('Evicted: '));
}
