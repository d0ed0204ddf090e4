import type { PodStatus } from '../../../src/kinds/index.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import { ownUidOf } from '../cluster/cluster-world.ts';
import { isCritical } from '../pressure/pressure-script.ts';
import type { ClusterScene, Rule } from './scene.ts';
import { podOfCall } from './starts.ts';

const evictionGraceSeconds = 1;
const evicted = ({ phase, reason }: PodStatus) => phase === 'Failed' && reason === 'Evicted';

/**
 * An evicted pod ends as Failed and never runs again, also across kubelet restarts. The rule
 * applies from the moment the eviction is observable: the first StopContainer call, or the API
 * status.
 */
export function evictedStaysEvicted({ runtime, report, desk, kubelet }: ClusterScene): Rule {
  const gone = new Set<string>();
  const isEvictedNow = (uid: string) => evicted(kubelet()?.state.statuses.getPodStatus(uid as PodUid) ?? {});
  const meet = (uid: string) => {
    const sketch = desk.known(uid);
    if (sketch === undefined) return;
    // Evicted pods terminate with this maximum grace.
    desk.shorten(uid, evictionGraceSeconds);
    if (sketch.source !== 'api' || isCritical(sketch))
      report('a critical pod is never evicted', `${uid} of ${sketch.name}`);
  };
  return {
    kubeletStarted({ kubelet: next }) {
      next.state.statuses.onChange(({ uid, after }) => {
        if (evicted(after)) meet(uid);
        else if (gone.has(uid) && after.phase !== undefined)
          report('an evicted pod ends as Failed', `${uid} is ${after.phase} ${after.reason ?? ''}`);
      });
    },
    calling(method, request) {
      if (method === 'stopContainer') {
        const { containerId } = request as { readonly containerId: string };
        const uid = runtime.containers().find(({ id }) => id === containerId)?.podUid;
        if (uid !== undefined && isEvictedNow(uid)) gone.add(uid);
      }
      const started = podOfCall(runtime, method, request);
      if (started !== undefined && gone.has(started))
        report('an evicted pod never runs again', `${method} of ${started}`);
    },
    apiChanged({ resource, object, type }) {
      if (resource.plural !== 'pods' || type === 'DELETED') return;
      if (evicted((object.status ?? {}) as PodStatus)) gone.add(ownUidOf(object));
    },
    settled() {
      for (const uid of gone) {
        const isWanted = desk.wanted().some((each) => each.uid === uid);
        if (isWanted && !isEvictedNow(uid)) report('an evicted pod ends as Failed', `${uid} does not say so`);
        if (runtime.runningContainers().some(({ podUid }) => podUid === uid))
          report('an evicted pod never runs again', `${uid} runs`);
      }
    },
  };
}
