import type { ExecSyncRequest } from '../../../src/cri/index.ts';
import type { Kubelet } from '../../../src/kubelet/index.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import { sidecarsOf } from '../sketch.ts';
import type { Rule, RuleScene } from './scene.ts';
import { hasFailed, startsAllAnew } from './stops.ts';

/** Tolerance for sending time; stop timeouts are whole seconds, rounded up. */
const slackMs = 50;
/** The minimum grace of a force-deleted pod, unless its spec requests less. */
const forcedGraceSeconds = 1;

/**
 * A sidecar is stopped only when all regular containers and all later sidecars have exited, or the
 * pod's grace has expired. A failed sidecar may be stopped alone.
 */
export function sidecarOrder(scene: RuleScene): Rule {
  const { report, desk, ledger, nowMs, kubelet, isDamaged, runtime } = scene;
  /** When each pod was first observed to be terminating. */
  const ending = new Map<string, number>();
  const isEnding = (uid: string) =>
    kubelet()?.control.workers.queries.isPodTerminationRequested(uid as PodUid) === true;
  const watch = () => {
    for (const { uid, sketch } of desk.all()) {
      if (sidecarsOf(sketch).length === 0) continue;
      if (isEnding(uid) && !ending.has(uid)) ending.set(uid, nowMs());
    }
  };
  /**
   * Observes the pod workers at each update, because a termination with only a sleep hook causes no
   * runtime call.
   */
  const watchClosely = ({ control: { workers }, state: { statuses } }: Kubelet) => {
    const update = workers.updatePod.bind(workers);
    workers.updatePod = (options) => {
      update(options);
      watch();
    };
    statuses.onChange(watch);
  };
  return {
    kubeletStarted: (life) => watchClosely(life.kubelet),
    // Across kubelet restarts the remaining grace is known only by the wall clock.
    clockJumped() {
      for (const uid of ending.keys()) ending.set(uid, Number.NEGATIVE_INFINITY);
    },
    entry(entry) {
      watch();
      // When a container starts in a pod that is not terminating, the recorded start of an earlier
      // termination is deleted. A terminating pod may still start a sidecar whose start had already
      // begun.
      if (entry.kind === 'container-started' && !isEnding(entry.podUid)) ending.delete(entry.podUid);
    },
    calling(method, request) {
      watch();
      if (method !== 'stopContainer' && method !== 'execSync') return;
      const { containerId, cmd = ['hook', 'pre-stop'] } = request as Partial<ExecSyncRequest>;
      const instance = ledger.find(containerId ?? '');
      const sketch = desk.known(instance?.podUid ?? '');
      if (instance === undefined || sketch === undefined) return;
      const { podUid, name } = instance;
      // The termination of the pod begins at the latest with its first preStop hook or stop
      // request.
      if (cmd[1] === 'pre-stop' && !ending.has(podUid)) ending.set(podUid, nowMs());
      if (method !== 'stopContainer') return;
      const place = sketch.init.findIndex((each) => each.name === name);
      if (place < 0 || sketch.init[place]?.restartPolicy !== 'Always') return;
      // For a pod without a spec the kubelet cannot distinguish sidecars from regular containers.
      if (kubelet()?.control.workers.activePod(podUid as PodUid) === undefined) return;
      if (isDamaged(podUid) || hasFailed(sketch, instance)) return;
      if (startsAllAnew(sketch, instance, ledger)) return;
      const usedMs = nowMs() - (ending.get(podUid) ?? nowMs());
      const leastSeconds = Math.min(forcedGraceSeconds, sketch.graceSeconds);
      const graceSeconds = Math.max(leastSeconds, desk.graceOf(podUid));
      if (usedMs >= graceSeconds * 1_000 - slackMs) return;
      const later = [
        ...sketch.containers,
        ...sidecarsOf(sketch).filter((each) => sketch.init.indexOf(each) > place),
      ];
      const names = new Set(later.map((each) => each.name));
      const still = runtime
        .runningContainers()
        .filter((each) => each.podUid === podUid && names.has(each.name));
      for (const other of still)
        report('sidecars stop last, in reverse order', `${name} of ${podUid} stops while ${other.name} runs`);
    },
  };
}
