import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../test/fakes/pods.ts';
import { anInstance, aSandbox, observe } from '../../test/fakes/runtime-view.ts';
import { aStatusContext } from '../../test/fakes/status-context.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { Container, ContainerStatus, PodStatus } from '../kinds/index.ts';
import { collectLogs } from '../lib/index.ts';
import { isTerminalPhase, type ObservedContainer, type Pod } from '../pods/index.ts';
import { isOurCondition } from './conditions.ts';
import { generatePodStatus } from './generate.ts';
import { StatusManager } from './status-manager.ts';

/** A random state of the pod in the runtime; its containers may disappear and reappear. */
interface Moment {
  readonly instances: readonly ObservedContainer[];
  readonly sandbox: 'ready' | 'not-ready' | 'none';
  readonly failsToStart: boolean;
  readonly readiness: 'success' | 'failure' | undefined;
  readonly isTerminal: boolean;
  readonly secondsLater: number;
  readonly finally: 'set' | 'terminate' | 'ready' | 'unready';
}

const names = ['main', 'other', 'init', 'side'] as const;

const anyInstance = fc
  .record({
    name: fc.constantFrom(...names),
    restartCount: fc.nat(4),
    state: fc.constantFrom('created', 'running', 'exited', 'unknown'),
    exitCode: fc.constantFrom(0, 0, 1, 137),
  })
  .map(({ exitCode, ...rest }) => anInstance({ ...rest, exitCode: rest.state === 'exited' ? exitCode : 0 }));

const anyMoment: fc.Arbitrary<Moment> = fc.record({
  instances: fc.array(anyInstance, { maxLength: 8 }),
  sandbox: fc.constantFrom('ready', 'not-ready', 'none'),
  failsToStart: fc.boolean(),
  readiness: fc.constantFrom('success', 'failure', undefined),
  isTerminal: fc.boolean(),
  secondsLater: fc.nat(100),
  finally: fc.constantFrom('set', 'set', 'set', 'set', 'terminate', 'ready', 'unready'),
});

const anyPod = fc
  .record({
    restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
    initContainers: fc.subarray<Container>([{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }]),
    probe: fc.boolean(),
    isDeleted: fc.boolean(),
  })
  .map(({ probe, isDeleted, ...spec }) => {
    const main = probe ? { name: 'main', readinessProbe: {} } : { name: 'main' };
    const metadata = isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
    return aPod({ metadata, spec: { ...spec, containers: [main, { name: 'other' }] } });
  });

/**
 * Reports the states one after another to the status manager and returns every cached status in
 * order.
 */
async function history(pod: Pod, moments: readonly Moment[]): Promise<readonly PodStatus[]> {
  const clock = new VirtualClock();
  const manager = new StatusManager({ clock, logger: collectLogs(clock).logger, findPod: () => pod });
  const retained: PodStatus[] = [];
  manager.onChange(({ after }) => retained.push(after));
  for (const moment of moments) {
    await clock.advance(moment.secondsLater * 1000);
    live(manager, pod, moment);
  }
  return retained;
}

function live(manager: StatusManager, pod: Pod, moment: Moment): void {
  const sandboxes = moment.sandbox === 'none' ? [] : [aSandbox({ state: moment.sandbox })];
  const context = aStatusContext({
    previous: manager.previousStatus(pod),
    isTerminal: moment.isTerminal,
    hasUsableSandbox: moment.sandbox === 'ready',
    startError: () => (moment.failsToStart ? { reason: 'CrashLoopBackOff', message: 'm' } : undefined),
    probes: { startup: () => undefined, readiness: () => moment.readiness },
  });
  manager.setPodStatus(pod, generatePodStatus(pod, observe(pod, moment.instances, sandboxes), context));
  const { uid } = pod.metadata;
  const id = manager.getPodStatus(uid)?.containerStatuses?.[0]?.containerID ?? '';
  if (moment.finally === 'terminate') manager.terminatePod(pod);
  else if (moment.finally !== 'set') manager.setContainerReadiness(uid, id, moment.finally === 'ready');
}

function allStatuses(status: PodStatus): readonly ContainerStatus[] {
  return [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
}

/** Calls the check with each pair of consecutive statuses in random histories. */
function always(check: (before: PodStatus, after: PodStatus) => void): Promise<void> {
  const property = fc.asyncProperty(anyPod, fc.array(anyMoment, { maxLength: 12 }), async (pod, moments) => {
    const retained = await history(pod, moments);
    retained.slice(1).forEach((after, index) => {
      check(retained[index] ?? {}, after);
    });
  });
  return fc.assert(property, { numRuns: 300 });
}

describe("invariants of a pod's status in random histories", () => {
  it('a terminal phase never changes', () =>
    always((before, after) => {
      if (isTerminalPhase(before.phase)) assert.equal(after.phase, before.phase);
    }));

  it('restart counts never decrease', () =>
    always((before, after) => {
      for (const old of allStatuses(before)) {
        const now = allStatuses(after).find(({ name }) => name === old.name);
        assert.ok((now?.restartCount ?? 0) >= old.restartCount, `${old.name} lost restarts`);
      }
    }));

  it('a transition time changes only when the status of its condition changes', () =>
    always((before, after) => {
      for (const old of (before.conditions ?? []).filter(({ type }) => isOurCondition(type))) {
        const now = after.conditions?.find(({ type }) => type === old.type);
        if (now?.status === old.status) assert.equal(now.lastTransitionTime, old.lastTransitionTime);
        else assert.ok(String(now?.lastTransitionTime) >= String(old.lastTransitionTime));
      }
    }));

  it('a terminated pod is never ready', () =>
    always((_, after) => {
      const ready = after.conditions?.find(({ type }) => type === 'Ready');
      if (isTerminalPhase(after.phase)) assert.equal(ready?.status, 'False');
    }));

  it('every container is in exactly one state', () =>
    always((_, after) => {
      for (const { state } of allStatuses(after)) {
        const states = [state?.waiting, state?.running, state?.terminated];
        assert.equal(states.filter((each) => each !== undefined).length, 1);
      }
    }));

  it('the start time never changes', () =>
    always((before, after) => {
      assert.equal(after.startTime, before.startTime);
    }));
});
