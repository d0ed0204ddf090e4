import type { Rule, Scene } from './scene.ts';

export function oneOfEachContainer({ runtime, report, isUncertain }: Scene): Rule {
  return {
    entry(entry) {
      if (entry.kind !== 'container-started') return;
      const { podUid, name, attempt, id } = entry;
      const rest = runtime
        .runningContainers()
        .filter((other) => other.id !== id && other.podUid === podUid && other.name === name)
        .filter((other) => !isUncertain() || other.attempt === attempt);
      for (const other of rest) {
        const what = `${name} #${attempt} of ${podUid} started while #${other.attempt} runs`;
        report('at most one running container of a name in a pod', what);
      }
    },
  };
}

/**
 * Static pods of one name that one kubelet started never overlap; a pod of a previous kubelet may
 * still be terminating.
 */
export function oneOfEachName({ runtime, report, kubelet, isUncertain, desk }: Scene): Rule {
  let known = new Set<string>();
  return {
    kubeletStarted() {
      known = new Set();
    },
    entry(entry) {
      const now = kubelet();
      for (const { metadata } of now?.state.pods.getPods() ?? [])
        if (now?.control.workers.queries.isPodTerminationRequested(metadata.uid) === false)
          known.add(metadata.uid);
      if (entry.kind !== 'container-started' || isUncertain()) return;
      // Whether the overlap is allowed: an API pod may be created while its force-deleted
      // predecessor is still terminating.
      if (desk.known(entry.podUid)?.source === 'api') return;
      const nameOf = new Map(runtime.sandboxes().map(({ podUid, podName }) => [podUid, podName]));
      const name = nameOf.get(entry.podUid);
      const rest = runtime
        .runningContainers()
        .filter(({ podUid }) => podUid !== entry.podUid && nameOf.get(podUid) === name && known.has(podUid));
      for (const other of rest) {
        const what = `${entry.podUid} of ${name} started while ${other.podUid} still runs`;
        report('static pods of one name do not overlap', what);
      }
    },
  };
}
