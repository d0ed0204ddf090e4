import type { PodUid } from '../../../src/pods/index.ts';
import type { Rule, Scene } from './scene.ts';

interface StartRequest {
  readonly containerId?: string;
  readonly podSandboxId?: string;
  readonly config?: { readonly metadata?: { readonly uid?: string } };
}

export function startsOnlyWhatIsWanted({ runtime, report, kubelet }: Scene): Rule {
  const uidOf = (method: string, { containerId, podSandboxId, config }: StartRequest) => {
    if (method === 'runPodSandbox') return config?.metadata?.uid;
    if (method === 'createContainer')
      return runtime.sandboxes().find(({ id }) => id === podSandboxId)?.podUid;
    if (method === 'startContainer') return runtime.containers().find(({ id }) => id === containerId)?.podUid;
    return undefined;
  };
  return {
    calling(method, request) {
      const uid = uidOf(method, request as StartRequest) as PodUid | undefined;
      const now = kubelet();
      if (uid === undefined || now === undefined) return;
      if (now.workers.queries.isPodTerminationRequested(uid))
        report('nothing starts after termination was requested', `${method} of ${uid}`);
      if (now.pods.getPodByUid(uid) === undefined)
        report('nothing starts after its manifest was seen to be gone', `${method} of ${uid}`);
    },
  };
}
