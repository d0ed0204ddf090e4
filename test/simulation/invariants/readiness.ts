import type { ContainerStatus, PodStatus } from '../../../src/kinds/index.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import { type PodSketch, servingOf } from '../sketch.ts';
import type { Rule, RuleScene } from './scene.ts';

/** The time within which every due relist completes and its result is synced. */
const seenMs = 70_000;

/**
 * A pod is reported as ready only while all its regular containers and sidecars run, according to
 * the kubelet's last relist. Once another relist was due, they must actually run.
 */
export function readyMeansRunning(scene: RuleScene): Rule {
  const { report, desk, ledger, nowMs, kubelet, runtime } = scene;
  const rule = 'a pod is ready only while its containers run';
  /** The time since which no injected failure has prevented the kubelet from relisting. */
  let clearMs = 0;
  const onChange = (uid: string, status: PodStatus) => {
    const sketch = desk.known(uid);
    if (sketch === undefined || !isReady(status)) return;
    const looked = kubelet()?.runtime.pleg.cache.get(uid as PodUid);
    for (const { name } of servingOf(sketch)) {
      const output = statusOf(status, name);
      if (output?.state?.running === undefined) report(rule, `${name} of ${uid} is not reported as running`);
      const observed = looked?.containers.find(({ id }) => output?.containerID?.endsWith(`://${id}`));
      if (observed !== undefined && observed.state !== 'running')
        report(rule, `${name} of ${uid} was observed as ${observed.state}`);
    }
  };
  const check = () => {
    const now = kubelet();
    if (now === undefined || !runtime.isUp) return;
    for (const { uid, sketch } of desk.all()) {
      const status = now.state.statuses.getPodStatus(uid as PodUid);
      if (status === undefined || !isReady(status)) continue;
      for (const what of longEnded(uid, sketch)) report(rule, what);
    }
  };
  const longEnded = (uid: string, sketch: PodSketch) =>
    servingOf(sketch).flatMap(({ name }) => {
      const endedMs = ledger.lastOf(uid, name)?.ended?.atMs ?? Number.POSITIVE_INFINITY;
      const agoMs = nowMs() - Math.max(endedMs, clearMs);
      return agoMs > seenMs ? [`${name} of ${uid} has not run for ${Math.round(agoMs)} ms`] : [];
    });
  return {
    kubeletStarted({ kubelet: next }) {
      clearMs = nowMs();
      next.state.statuses.onChange(({ uid, after }) => onChange(uid, after));
    },
    entry({ kind }) {
      if (kind === 'call-fault' || kind === 'event-fault' || kind === 'disconnected') clearMs = nowMs();
      if (kind === 'runtime-up' || kind === 'runtime-down') clearMs = nowMs();
      check();
    },
    calling: check,
  };
}

function isReady({ conditions = [] }: PodStatus): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

export function statusOf(status: PodStatus, name: string): ContainerStatus | undefined {
  const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  return all.find((each) => each.name === name);
}
