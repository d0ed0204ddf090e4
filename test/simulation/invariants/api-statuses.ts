import type { ContainerStatus, PodStatus } from '../../../src/kinds/index.ts';
import type { StoredObject } from '../../../src/local-api/api/stored-object.ts';
import { isTerminalPhase } from '../../../src/pods/index.ts';
import { plainStatus } from '../../../src/status/writer/sync-status.ts';
import { ownUidOf } from '../cluster/cluster-world.ts';
import type { ClusterScene, Rule } from './scene.ts';

const rule = 'no status in the API goes back';

/** The node never writes a pod status to the API that is older than the previous one. */
export function statusesGoOn({ report, cluster, isDamaged, desk, nowMs }: ClusterScene): Rule {
  /**
   * For each pod the container statuses that kubelets have computed, each with its positions in the
   * order of computation.
   */
  const output = new Map<string, Map<string, number[]>>();
  const written = new Map<string, number>();
  /** When the first status of the current instance of each static pod was written to the API. */
  const instanceMs = new Map<string, number>();
  let turn = 0;
  return {
    kubeletStarted({ kubelet }) {
      kubelet.state.statuses.onChange(({ uid, after }) => {
        const texts = output.get(uid) ?? new Map<string, number[]>();
        const text = containersText(after);
        texts.set(text, [...(texts.get(text) ?? []), ++turn]);
        output.set(uid, texts);
      });
    },
    apiChanged({ type, resource, object, before, user }) {
      if (type !== 'MODIFIED' || resource.plural !== 'pods' || user !== cluster.world.node.name) return;
      if (before === undefined || object.status === before.status) return;
      const { uid, name } = object.metadata;
      const own = ownUidOf(object);
      const [was, is] = [statusOf(before), statusOf(object)];
      if (isTerminalPhase(was.phase) && is.phase !== was.phase)
        report(rule, `${name} (${own}) was ${was.phase} and is ${is.phase}`);
      const rest = isDamaged(own) ? 'ignored' : 'counted';
      const found = regressions(was, is, rest);
      // A static pod whose manifest was removed and added again starts as a new pod with the same
      // UID, once its previous instance has terminated.
      const isNewInstance = own !== uid && !desk.wantedSince(own, instanceMs.get(uid) ?? 0);
      if (found.length > 0 && isNewInstance) instanceMs.set(uid, nowMs());
      else for (const what of found) report(rule, `${name} (${own}): ${what}`);
      const turns = output.get(own)?.get(containersText(is));
      if (turns === undefined) return;
      const last = written.get(uid) ?? 0;
      // Two kubelets may have computed the same status, so it can have several positions; the first
      // one not older than the last written position counts.
      const at = turns.find((each) => each >= last);
      if (at === undefined) report(rule, `${name} (${own}) got an older status after a newer one`);
      written.set(uid, at ?? last);
    },
  };
}

function statusOf({ status = {} }: StoredObject): PodStatus {
  return status as PodStatus;
}

function containersOf({ containerStatuses = [], initContainerStatuses = [] }: PodStatus) {
  return [...initContainerStatuses, ...containerStatuses];
}

function containersText(status: PodStatus): string {
  return JSON.stringify(containersOf(plainStatus(status)), inOrder);
}

/** Sorts object fields, so that their order does not matter in the comparison. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function regressions(
  before: PodStatus,
  after: PodStatus,
  otherInstances: 'counted' | 'ignored',
): readonly string[] {
  const earlier = new Map(containersOf(before).map((each) => [each.name, each]));
  return containersOf(after).flatMap((each) => {
    const was = earlier.get(each.name);
    if (was === undefined) return [];
    const isSame = was.containerID !== undefined && was.containerID === each.containerID;
    return isSame || otherInstances === 'counted' ? regressionsOf(was, each) : [];
  });
}

function regressionsOf(was: ContainerStatus, is: ContainerStatus): readonly string[] {
  const isSame = was.containerID !== undefined && was.containerID === is.containerID;
  const hasRisen = isSame && was.state?.terminated !== undefined && is.state?.running !== undefined;
  return [
    ...(is.restartCount < was.restartCount
      ? [`${is.name} had restarted ${was.restartCount} times, and now ${is.restartCount}`]
      : []),
    ...(hasRisen ? [`${is.name} had terminated and runs again`] : []),
  ];
}
