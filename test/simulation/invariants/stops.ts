import { afterExit, isSidecar, type PodSketch, policyOf, sidecarsOf } from '../sketch.ts';
import type { Instance, Ledger } from './ledger.ts';
import type { Rule, RuleScene } from './scene.ts';

export function stopsOnlyWhatIsUnwanted(scene: RuleScene): Rule {
  const { runtime, report, desk, isDamaged, ledger, cluster } = scene;
  /** Those a kubelet has seen to be over; what it asked for then may happen when it is gone. */
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
      // A pod may be told to end, and be wanted again, while a start that was asked for before is under way.
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

/** Whether the manifest itself has the container stopped. */
function isCalledFor(sketch: PodSketch, instance: Instance, ledger: Ledger): boolean {
  return (
    hasFailed(sketch, instance) ||
    isOver(sketch, instance.podUid, ledger) ||
    startsAllAnew(sketch, instance, ledger)
  );
}

/** What was found out about this very instance is reason enough to stop it. */
export function hasFailed(sketch: PodSketch, { name, postStartFailed, probes }: Instance): boolean {
  const container = [...sketch.init, ...sketch.containers].find((one) => one.name === name);
  const isBad = (type: 'liveness' | 'startup') => {
    const probe = container?.probes?.[type];
    // One whose preStop hook has begun for it is stopped by the next kubelet as well, whatever that finds out.
    const { badInARow, mostBadInARow } = probes[type];
    const bad = container?.preStop === undefined ? badInARow : mostBadInARow;
    return probe !== undefined && bad >= probe.failureThreshold;
  };
  return postStartFailed || isBad('liveness') || isBad('startup');
}

/** Whether nothing is left to run, or an init container has failed for good: then sidecars end, too. */
function isOver(sketch: PodSketch, uid: string, ledger: Ledger): boolean {
  const end = (name: string) => ledger.lastOf(uid, name)?.ended;
  const hasEnded = sketch.containers.every((one) => {
    const last = ledger.lastOf(uid, one.name);
    if (last?.ended !== undefined) return afterExit(sketch, one, last.ended.exitCode) === 'stays-ended';
    // One whose probe has failed does not come back if it never does, whatever its rules say of exit codes.
    return last !== undefined && hasFailed(sketch, last) && policyOf(sketch, one) === 'Never';
  });
  const hasFailedInit = sketch.init.some((one) => {
    const ended = end(one.name);
    const isBad = ended !== undefined && (ended.exitCode !== 0 || ended.cause === 'oom');
    return !isSidecar(one) && isBad && afterExit(sketch, one, ended.exitCode) === 'stays-ended';
  });
  return (sidecarsOf(sketch).length > 0 || sketch.ephemeral !== undefined) && (hasEnded || hasFailedInit);
}

export function startsAllAnew(sketch: PodSketch, { podUid, sandboxId }: Instance, ledger: Ledger): boolean {
  const past = ledger.inSandbox(podUid, sandboxId);
  return [...sketch.init, ...sketch.containers].some((one) =>
    past.some(
      ({ name, ended }) =>
        name === one.name && ended !== undefined && afterExit(sketch, one, ended.exitCode) === 'restarts-all',
    ),
  );
}
