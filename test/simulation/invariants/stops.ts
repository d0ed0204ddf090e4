import { afterExit, isSidecar, type PodSketch, policyOf, sidecarsOf } from '../sketch.ts';
import type { Instance, Ledger } from './ledger.ts';
import type { Rule, RuleScene } from './scene.ts';

export function stopsOnlyWhatIsUnwanted(scene: RuleScene): Rule {
  const { runtime, report, desk, isDamaged, ledger, cluster } = scene;
  /**
   * The pods that a kubelet has reported as failed by deadline or eviction; calls of this kubelet
   * may still take effect after it has exited.
   */
  const over = new Set<string>();
  return {
    kubeletStarted({ kubelet }) {
      kubelet.state.statuses.onChange(({ uid, after }) => {
        const hasDeadline = desk.known(uid)?.deadlineSeconds !== undefined;
        const isEvicted = after.reason === 'Evicted';
        if ((hasDeadline || isEvicted) && after.phase === 'Failed') over.add(uid);
      });
    },
    entry(entry) {
      if (entry.kind === 'container-started') over.delete(entry.podUid);
      if (entry.kind !== 'container-signalled' || isDamaged(entry.podUid)) return;
      const { id, podUid, name, attempt } = entry;
      const instance = ledger.find(id);
      const sketch = desk.known(podUid);
      // The pod may have been removed and added again while one of its container starts was in
      // progress.
      if (!desk.wantedSince(podUid, instance?.createdMs ?? 0) || over.has(podUid)) return;
      if (sketch !== undefined && instance !== undefined && isCalledFor(sketch, instance, ledger)) return;
      const hasTwin = runtime
        .runningContainers()
        .some((other) => other.id !== id && other.podUid === podUid && other.name === name);
      const isAway = cluster?.world.awaySinceMs !== undefined;
      const rule = isAway
        ? 'nothing stops because the API is away'
        : 'nothing stops that its manifest asks for';
      if (!hasTwin) report(rule, `${name} #${attempt} of ${podUid}`);
    },
  };
}

/** Whether the spec of the pod itself requires the container to be stopped. */
function isCalledFor(sketch: PodSketch, instance: Instance, ledger: Ledger): boolean {
  return (
    hasFailed(sketch, instance) ||
    isOver(sketch, instance.podUid, ledger) ||
    startsAllAnew(sketch, instance, ledger)
  );
}

/** Whether a probe or hook failure of this instance justifies stopping it. */
export function hasFailed(sketch: PodSketch, { name, postStartFailed, probes }: Instance): boolean {
  const container = [...sketch.init, ...sketch.containers].find((each) => each.name === name);
  const isBad = (type: 'liveness' | 'startup') => {
    const probe = container?.probes?.[type];
    // Once a preStop hook has begun, the next kubelet stops the container too, even if its probes
    // succeed again by then.
    const { badInARow, mostBadInARow } = probes[type];
    const bad = container?.preStop === undefined ? badInARow : mostBadInARow;
    return probe !== undefined && bad >= probe.failureThreshold;
  };
  return postStartFailed || isBad('liveness') || isBad('startup');
}

/**
 * Whether the sidecars must terminate: no other container is left to run, or an init container has
 * failed permanently.
 */
function isOver(sketch: PodSketch, uid: string, ledger: Ledger): boolean {
  const end = (name: string) => ledger.lastOf(uid, name)?.ended;
  const hasEnded = sketch.containers.every((each) => {
    const last = ledger.lastOf(uid, each.name);
    if (last?.ended !== undefined) return afterExit(sketch, each, last.ended.exitCode) === 'stays-ended';
    // A container with a failed probe and restart policy Never is not restarted, whatever its exit
    // code rules.
    return last !== undefined && hasFailed(sketch, last) && policyOf(sketch, each) === 'Never';
  });
  const hasFailedInit = sketch.init.some((each) => {
    const ended = end(each.name);
    const isBad = ended !== undefined && (ended.exitCode !== 0 || ended.cause === 'oom');
    return !isSidecar(each) && isBad && afterExit(sketch, each, ended.exitCode) === 'stays-ended';
  });
  return (sidecarsOf(sketch).length > 0 || sketch.ephemeral !== undefined) && (hasEnded || hasFailedInit);
}

export function startsAllAnew(sketch: PodSketch, { podUid, sandboxId }: Instance, ledger: Ledger): boolean {
  const past = ledger.inSandbox(podUid, sandboxId);
  return [...sketch.init, ...sketch.containers].some((each) =>
    past.some(
      ({ name, ended }) =>
        name === each.name &&
        ended !== undefined &&
        afterExit(sketch, each, ended.exitCode) === 'restarts-all',
    ),
  );
}
