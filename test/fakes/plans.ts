import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Container, PodSpec } from '../../src/kinds/index.ts';
import type { ObservedContainer, ObservedPod } from '../../src/pods/index.ts';
import { computePodActions } from '../../src/runtime/plan/compute-pod-actions.ts';
import type { PlanContext, PodActions, ProbeResult } from '../../src/runtime/plan/pod-actions.ts';
import { anInstance, anObservedPod, aSandbox } from './observed.ts';
import { aPod } from './pods.ts';

/** Containers for tests of computePodActions, and short forms of the computed actions. */

export const quiet: PlanContext = { liveness: () => undefined, startup: () => undefined };
export const [a, b]: [Container, Container] = [
  { name: 'a', image: 'x:1' },
  { name: 'b', image: 'x:1' },
];
export const [i1, i2, i3]: [Container, Container, Container] = [
  { name: 'i1', image: 'x:1' },
  { name: 'i2', image: 'x:1' },
  { name: 'i3', image: 'x:1' },
];
export const s1: Container = { name: 's1', image: 'x:1', restartPolicy: 'Always' };
export const s2: Container = { name: 's2', image: 'x:1', restartPolicy: 'Always' };
export const exited = (container: Container, exitCode = 0, parts: Partial<ObservedContainer> = {}) =>
  anInstance(container, { state: 'exited', exitCode, ...parts });

/** Returns the actions of a plan in short form; kills as name and message. */
export function brief(plan: PodActions) {
  const { killPod, createSandbox, initContainersToStart, containersToStart, ephemeralContainersToStart } =
    plan;
  return {
    ...(killPod ? { killPod } : {}),
    ...(createSandbox ? { createSandbox } : {}),
    ...(initContainersToStart.length > 0 ? { init: initContainersToStart } : {}),
    ...(containersToStart.length > 0 ? { start: containersToStart } : {}),
    ...(ephemeralContainersToStart.length > 0 ? { ephemeral: ephemeralContainersToStart } : {}),
    ...(plan.containersToKill.size > 0
      ? { kill: Array.from(plan.containersToKill.values(), ({ message }) => message) }
      : {}),
  };
}

export interface Row {
  readonly what: string;
  readonly spec?: Partial<PodSpec>;
  readonly seen?: Partial<ObservedPod>;
  readonly context?: Partial<PlanContext>;
  readonly expected: ReturnType<typeof brief> & { attempt?: number; sandboxId?: string };
}

export function check(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    for (const { what, spec = {}, seen = {}, context = {}, expected } of rows) {
      test(what, () => {
        const pod = aPod({ spec: { containers: [a, b], ...spec } });
        const plan = computePodActions(pod, anObservedPod(seen), { ...quiet, ...context });
        const { attempt, sandboxId, ...rest } = expected;
        assert.deepEqual(brief(plan), rest);
        if (attempt !== undefined) assert.equal(plan.attempt, attempt);
        if (sandboxId !== undefined) assert.equal(plan.sandboxId, sandboxId);
      });
    }
  });
}

export const notReady = aSandbox({ state: 'not-ready' });
/** Returns a probe that always has this result. */
export const says = (result: ProbeResult | undefined) => () => result;
