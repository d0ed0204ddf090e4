import type { PodUid } from '../../../src/pods/index.ts';
import type { Rule, Scene } from './scene.ts';

interface StartRequest {
  readonly containerId?: string;
  readonly podSandboxId?: string;
  readonly config?: { readonly metadata?: { readonly uid?: string; readonly name?: string } };
}

/** The UID of the pod that a runtime call starts; undefined for other calls. */
export function podOfCall(runtime: Scene['runtime'], method: string, request: unknown): string | undefined {
  const { containerId, podSandboxId, config } = request as StartRequest;
  if (method === 'runPodSandbox') return config?.metadata?.uid;
  if (method === 'createContainer') return runtime.sandboxes().find(({ id }) => id === podSandboxId)?.podUid;
  if (method === 'startContainer') return runtime.containers().find(({ id }) => id === containerId)?.podUid;
  return undefined;
}

/** The name of the container that a runtime call creates or starts. */
export function containerOfCall(runtime: Scene['runtime'], request: unknown): string | undefined {
  const { containerId, config } = request as StartRequest;
  return config?.metadata?.name ?? runtime.containers().find(({ id }) => id === containerId)?.name;
}

export function startsOnlyWhatIsWanted({ runtime, report, kubelet }: Scene): Rule {
  return {
    calling(method, request) {
      const uid = podOfCall(runtime, method, request) as PodUid | undefined;
      const now = kubelet();
      if (uid === undefined || now === undefined) return;
      if (now.control.workers.queries.isPodTerminationRequested(uid))
        report('nothing starts after termination was requested', `${method} of ${uid}`);
      if (now.state.pods.getPodByUid(uid) === undefined)
        report('nothing starts after its manifest was seen to be gone', `${method} of ${uid}`);
    },
  };
}
